// Documents changed in the index by hand, in every engine: verify compares what a search would show, finds each of them
// and repairs it. With `fast` it believes the stored hashes, and says so.

import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import type { VerifyPlan, VerifyResult } from '../../src/index.ts'
import { type Alteration, everyEngine } from '../support/every-engine.ts'
import { BY, type Profiles, prepare, profiles } from './profiles.ts'

const db = useDatabase()
const rows = 250
const altered = Array.from({ length: 100 }, (_, at) => String(1 + 2 * at))
const ways: readonly Alteration[] = ['shown', 'words', 'keys', 'numbers']

beforeAll(() => prepare(db, rows))

const closers: (() => Promise<unknown>)[] = []

// Not after each engine: the events of a repair are for all subscriptions.
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

if (everyEngine.opensearch === undefined) it.skip('OpenSearch needs HERMOD_TEST_OPENSEARCH, the URL of a node')

// All at once, step by step: most of the time each waits for its subscription, and a repair is an event for all.
it(`finds and repairs 100 documents changed by hand: ${Object.keys(everyEngine).join(', ')}`, async () => {
  const stages = await Promise.all(Object.keys(everyEngine).map(opened))
  const all = async (plan: VerifyPlan) =>
    Object.fromEntries(await Promise.all(stages.map(({ verified }) => verified(plan))))
  const each = (result: object) => Object.fromEntries(stages.map(({ name }) => [name, result]))
  const none = { stale: 0, missing: 0, orphaned: 0, repaired: 0, fast: false }
  expect(await all({})).toEqual(each(none))
  // OpenSearch counts a document's version up by one when it is changed by hand: the log goes on before the repair.
  await db.query(`update profile set bio = bio || ', lately' where id > 240`)
  for (const { alter } of stages) {
    for (const [at, id] of altered.entries()) await alter(id, ways[at % ways.length] as Alteration)
  }
  expect(await all({})).toEqual(each({ ...none, stale: altered.length }))
  // OpenSearch keeps no hash: it is always made from the document.
  const { opensearch: _, ...trusting } = await all({ fast: true })
  const { opensearch: __, ...others } = each({ ...none, fast: true })
  expect(trusting).toEqual(others)
  expect(await all({ sample: rows })).toEqual(each({ ...none, stale: altered.length }))
  const [first] = stages
  expect(await first?.verified({ repair: true })).toEqual([first?.name, { ...none, repaired: altered.length }])
  expect(await all({})).toEqual(each(none))
}, 180_000)

async function opened(engineName: string) {
  const name = `tampered_${engineName}`
  const open = everyEngine[engineName] as (typeof everyEngine)[string]
  // Each has connections of its own: a comparison keeps one for as long as it lasts.
  const pool = new pg.Pool({ connectionString: db.url, max: 8 })
  closers.push(() => pool.end())
  const { engine, alter, stop } = await open({ pool, index: name })
  closers.push(stop)
  const made = profiles({ pool }, { engine, name })
  closers.push(() => made.outbox.close())
  await made.index.ensure()
  await made.outbox.start({ pollMs: 50, concurrency: 1, upkeep: false })
  await carriedOut(made, made.outbox.backfill(name, BY))
  const verified = async (plan: VerifyPlan) => {
    const { result } = await carriedOut(made, made.outbox.verify(name, plan, BY))
    const { stale, missing, orphaned, repaired, fast } = result as unknown as VerifyResult
    return [engineName, { stale, missing, orphaned, repaired, fast }] as const
  }
  return { name: engineName, alter, verified }
}

async function carriedOut({ outbox }: Profiles, asked: Promise<{ id: bigint }>) {
  const journey = await outbox.journeys.wait((await asked).id)
  expect([journey.kind, journey.subject, journey.state, journey.error]).toEqual([
    journey.kind,
    journey.subject,
    'succeeded',
    null,
  ])
  return journey
}
