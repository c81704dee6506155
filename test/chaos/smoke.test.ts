// The chaos harness once, short, with a fixed seed: real processes, faults, and the checker over the
// histories. `npm run chaos` is the long form. Seeds that ever failed are in seeds.json.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

interface Seed {
  readonly seed: number
  readonly seconds: number
  readonly rate: number
  readonly faults: string
  readonly why: string
}

const run = promisify(execFile)
const program = fileURLToPath(new URL('run.mjs', import.meta.url))
const { smoke } = JSON.parse(readFileSync(new URL('seeds.json', import.meta.url), 'utf8')) as { smoke: Seed[] }

async function chaos({ seed, seconds, rate, faults }: Seed) {
  const args = ['--seed', seed, '--seconds', seconds, '--rate', rate, '--faults', faults, '--json'].map(String)
  const { code = 0, stdout, stderr } = await run(process.execPath, [program, ...args]).catch((error) => error)
  const result = JSON.parse(stdout.trim().split('\n').at(-1) || '{}')
  return { result, stderr: `exit ${code}\n${stderr}` }
}

describe('chaos', () => {
  for (const given of smoke) {
    const repeat = `npm run chaos -- --repro ${given.seed} --seconds ${given.seconds} --rate ${given.rate} --faults ${given.faults}`
    it(`${given.why}: ${repeat}`, { timeout: 120_000 }, async () => {
      const { result, stderr } = await chaos(given)
      expect(result, stderr).toMatchObject({
        lost: 0,
        ghosts: 0,
        orderViolations: 0,
        stale: 0,
        sentTwice: 0,
        unrecorded: 0,
        wronglyDead: 0,
        unfinished: 0,
        open: 0,
        ok: true,
      })
      expect(result.duplicates).toBeLessThanOrEqual(result.duplicatesBound)
      expect(result, stderr).toMatchObject({ dbCrashes: 1, workers: 3 })
      expect(result.kills).toBeGreaterThan(0)
      expect(result.sinkOutages).toBeGreaterThan(0)
    })
  }
})
