// The stress harness once, short: real worker processes, kill -9 in the middle of their calls, and
// the checker over the histories. `npm run stress` is the long form.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const program = fileURLToPath(new URL('../../../test/stress/run.mjs', import.meta.url))
const load = ['--seconds', '6', '--kills', '2', '--rate', '150', '--trouble', '0.01']
const args = [...load, '--seed', '7', '--json']

it('kills of workers lose, invent and disorder nothing', { timeout: 90_000 }, async () => {
  const { stdout, stderr } = await run(process.execPath, [program, ...args]).catch((error) => error)
  const result = JSON.parse(stdout.trim().split('\n').at(-1) || '{}')
  expect(result, stderr).toMatchObject({
    lost: 0,
    ghosts: 0,
    orderViolations: 0,
    dead: 0,
    unknown: 0,
    kills: 2,
    killsInFlight: 2,
    workers: 3,
    ok: true,
  })
  expect(result.duplicates).toBeLessThanOrEqual(result.duplicatesBound)
})
