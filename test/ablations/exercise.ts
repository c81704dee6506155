// Runs a share of all sabotages on a cluster of its own. The shares are test files of their own, so that several run
// at once: a transaction that is open in any database is in every snapshot of its cluster.

import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { CompiledEngine } from './compiled.ts'
import { patchedEnv, removeCompiled } from './patched.ts'
import type { Sabotage } from './sabotage.ts'

/** Some cases wait for leases and pauses, on a machine that others load too. */
const sabotageMs = 60_000

export async function allSabotages(): Promise<readonly Sabotage[]> {
  const folder = new URL('./sabotages/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  const found: Sabotage[] = []
  for (const file of files) {
    const module = (await import(/* @vite-ignore */ new URL(file, folder).href)) as { sabotages: readonly Sabotage[] }
    found.push(...module.sabotages)
  }
  return found
}

/** Every so manieth sabotage, so that a new one needs no place in a list. */
export async function exerciseShare(share: number, shares: number): Promise<void> {
  const server = useDatabase({ ownCluster: true, settings: { autovacuum: 'off' } })
  let compiled: CompiledEngine
  beforeAll(async () => {
    compiled = await CompiledEngine.create(`share-${share}`)
  })
  afterAll(() => removeCompiled(compiled))
  const mine = (await allSabotages()).filter((_, at) => at % shares === share - 1)
  for (const sabotage of mine) {
    it(`${sabotage.name} is caught by ${sabotage.caughtBy.title}`, { timeout: sabotageMs }, async () => {
      const env = await patchedEnv(server, compiled, sabotage)
      const failure = await sabotage.caughtBy.run(env).then(
        () => undefined,
        (error: unknown) => String(error),
      )
      expect(failure ?? 'nobody noticed', sabotage.says).toMatch(sabotage.red)
    })
  }
}
