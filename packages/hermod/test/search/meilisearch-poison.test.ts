// Documents that Meilisearch cannot take, and does not name, among many good ones: through a real subscription only
// they are dead, however the server merges its tasks.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { searchSink } from '../../src/sinks/search/index.ts'
import { type Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { drain } from '../../src/testing/index.ts'
import { type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch/double.ts'
import { definition, key } from '../support/meilisearch/open-index.ts'

const db = useDatabase()
const many = 2_000
const bad = [3, 450, 451, 1_200, 1_999]

let double: MeilisearchDouble
let engine: Meilisearch
let outbox: Outbox

const documentOf = (n: number) => ({
  title: `document ${n}`,
  ...(bad.includes(n) && { _vectors: `not an object ${n}` }),
})

beforeAll(async () => {
  double = await meilisearchDouble({ key })
  engine = meilisearch({ url: double.url, key })
  await engine.ensureIndex('documents', definition)
  double.queue.delayMs = [10, 40]
  outbox = createOutbox({ pool: db.pool })
  outbox.subscribe('poison', {
    revision: 1,
    types: ['document.*'],
    coalesce: 'latest',
    from: 'beginning',
    batch: { count: 250 },
    retry: { baseMs: 200, capMs: 1_000 },
    sink: searchSink(engine, { index: 'documents' }),
  })
})

afterAll(async () => {
  await outbox.close()
  await engine.close()
  await double.stop()
})

const dead = () =>
  db.query(`select aggregate_id as id from outbox.delivery where state = 'dead' order by aggregate_id::int`)
const open = () => db.query(`select from outbox.delivery where state <> 'dead'`)

it('5 bad documents of 2,000 make exactly 5 dead letters', async () => {
  for (let from = 0; from < many; from += 500) {
    const events = Array.from({ length: 500 }, (_, at) => from + at).map((n) => {
      return { type: 'document.written', aggregate: ['document', String(n)] as const, payload: documentOf(n) }
    })
    await outbox.transaction((tx) => outbox.emit(tx, events))
  }
  await outbox.start({ pollMs: 50, concurrency: 4, upkeep: false })
  await drain(outbox, { timeoutMs: 120_000 })
  await eventually(async () => (await open()).length === 0, { timeoutMs: 60_000, what: 'retries to end' })
  expect(await dead()).toEqual(bad.map((n) => ({ id: String(n) })))
  expect(await engine.count('documents')).toBe(many - bad.length)
}, 200_000)
