// An engine whose tasks take half a second: a replay and a rebuild are not as slow as one call after the other.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { drain } from '../../src/testing/index.ts'
import { BY, type Profiles, prepare, profiles } from '../journeys/profiles.ts'
import { type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch/double.ts'

const db = useDatabase()
const rows = 4_000
const taskMs = 500
/** Documents a second that must be reached; several times as many are usual. */
const atLeast = 500
/** A machine that is busy with something else may need another try. */
const measured = { retry: 3, timeout: 300_000 }

/** When a journey was first seen in each. */
const phases = new Map<string, number>()
let double: MeilisearchDouble
let made: Profiles

beforeAll(async () => {
  await prepare(db, rows)
  double = await meilisearchDouble()
  const listener = {
    journey: ({ phase }: { readonly phase: string | null }) => {
      if (phase !== null && !phases.has(phase)) phases.set(phase, performance.now())
    },
  }
  made = profiles(db, { engine: meilisearch({ url: double.url }), listener })
  await made.index.ensure()
  await db.query(`update profile set bio = bio || '!'`)
  await made.outbox.start({ pollMs: 50, concurrency: 2, upkeep: false })
  await drain(made.outbox, { timeoutMs: 60_000 })
  double.queue.delayMs = taskMs
}, 120_000)

afterAll(async () => {
  await made.outbox.close()
  await double.stop()
})

async function ended(asked: Promise<{ id: bigint }>): Promise<void> {
  const journey = await made.outbox.journeys.wait((await asked).id)
  expect([journey.state, journey.error]).toEqual(['succeeded', null])
}

function tell(what: string, ms: number): number {
  const rate = Math.round(rows / (ms / 1_000))
  process.stdout.write(`${what}: ${rate} documents a second into tasks of ${taskMs} ms.\n`)
  return rate
}

it('a replay of 4,000 events into an index that lost its documents: at least 500 a second', measured, async () => {
  double.store.get('profiles').documents.clear()
  const startedMs = performance.now()
  await ended(made.outbox.journeys.replay('search', { ...BY, from: 1n }))
  expect(tell('Replay', performance.now() - startedMs)).toBeGreaterThan(atLeast)
  expect(await made.engine.count('profiles')).toBe(rows)
})

it(
  'a rebuild of 4,000 rows while rows change: at least 500 a second are loaded and caught up with',
  measured,
  async () => {
    phases.clear()
    const editing = db.query(`update profile set bio = bio || '?' where id <= 500`)
    await ended(made.outbox.rebuild('profiles', {}, BY))
    await editing
    const [from, to] = [phases.get('load'), phases.get('verify')] as [number, number]
    expect(tell('Rebuild', to - from)).toBeGreaterThan(atLeast)
  },
)
