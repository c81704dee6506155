import { it } from 'vitest'
import { cyclesOf } from './support/cycles.ts'
import { readTree } from './support/source-tree.ts'
it('x', () => {
const s = readTree().filter(({ path }) => /^packages\/[^/]+\/src\/.*\.ts$/.test(path))
for (const g of cyclesOf(s)) console.log(g.length, g)
})
