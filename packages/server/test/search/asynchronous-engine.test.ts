// The reactions with an engine whose writes are tasks that end later: what the sink parks is polled, so
// nothing is tried twice and nothing is dead.

import { createOutbox, type Outbox } from 'hermod'
import { type Meilisearch, meilisearch } from 'hermod/sinks/search/meilisearch'
import { drain } from 'hermod/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type MeilisearchDouble, meilisearchDouble } from '../../../hermod/test/support/meilisearch/double.ts'
import { installReactions } from '../../src/reactions.ts'
import { createDraft, createPublished } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
let double: MeilisearchDouble
let engine: Meilisearch
let outbox: Outbox

beforeAll(async () => {
  double = await meilisearchDouble()
  engine = meilisearch({ url: double.url })
  outbox = createOutbox({ pool: server.platform.pool })
  await installReactions({ ...server.platform, outbox, search: engine })
  double.queue.delayMs = 100
  await outbox.start({ name: 'asynchronous', busyPollMs: 5, pollMs: 50 })
})

afterAll(async () => {
  await outbox?.close()
  await engine?.close()
  await double?.stop()
})

it('published documents and drafts are indexed once, without a retry', async () => {
  for (let n = 0; n < 3; n++) await createPublished(server, 'ada', { title: `Asynchronous ${n}` })
  await createDraft(server, 'ada', { title: 'Asynchronous draft' })
  await drain(outbox, { timeoutMs: 60_000 })
  expect(await server.db.query('select subscription, state from outbox.delivery')).toEqual([])
  expect((await engine.search('documents', { query: 'asynchronous' })).total).toBe(3)
  expect((await engine.search('drafts', { query: 'asynchronous' })).total).toBe(1)
})
