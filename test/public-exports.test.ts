// Every public name of the packages, by entry of `exports`, against a list that is checked in: nothing
// becomes public, or stops being so, by accident. After a deliberate change: npx vitest run -u with this file.

import { expect, it } from 'vitest'
import { doorsOf, publicNames } from './support/public-names.ts'
import { readTree } from './support/source-tree.ts'

const files = readTree()
const sources = files.filter(({ path }) => /^packages\/[^/]+\/src\/.*\.ts$/.test(path))
const manifests = files.filter(({ path }) => /^packages\/[^/]+\/package\.json$/.test(path))

it('the public names are exactly those that are listed', async () => {
  const doors = manifests.flatMap((manifest) => doorsOf(manifest, sources))
  expect(doors.length).toBeGreaterThan(10)
  const text = doors.map(
    ([entry, door]) =>
      `${entry}\n${publicNames(door)
        .map((name) => `  ${name}\n`)
        .join('')}`,
  )
  await expect(text.join('\n')).toMatchFileSnapshot('public-exports.txt')
})

it('no source file exports everything of another', () => {
  const all = sources.filter(({ text }) => /^export (type )?\*/m.test(text))
  expect(all.map(({ path }) => path)).toEqual([])
})
