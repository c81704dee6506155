// Outages of a real OpenSearch node under an import of 500 documents and the edits that follow, each
// through a real subscription: no document is missing or stale at the end, only the truly bad one is
// dead, and what a person must mend is said in a sentence and spends nothing.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { documentHash, searchSink } from '../../src/sinks/search/index.ts'
import { type OpenSearch, opensearch } from '../../src/sinks/search/opensearch.ts'
import { drain } from '../../src/testing/index.ts'
import { type Change, states, writeChanges } from '../support/changes.ts'
import { type Fault, OpenSearchFaults } from '../support/opensearch/faults.ts'

const url = process.env.HERMOD_TEST_OPENSEARCH ?? ''
const run = Date.now().toString(36)
const definition = { fields: { title: { kind: 'text' }, pages: { kind: 'number' } } } as const

interface Played {
  readonly proxy: OpenSearchFaults
  readonly engine: OpenSearch
  readonly index: string
}

interface Scene {
  readonly name: string
  /** What the first so many bulks meet. */
  readonly fault?: Fault
  readonly times?: number
  readonly undeclared?: boolean
  prepare?(played: Played): unknown
  /** What is said once the subscription is held; every scene with it must be. */
  readonly says?: RegExp
  repair?(played: Played): unknown
}

const scenes: readonly Scene[] = [
  { name: 'rate-limit', fault: { status: 429, type: 'busy', retryAfter: '1' }, times: 2 },
  { name: 'down', fault: { status: 503, type: 'unavailable_shards_exception' }, times: 3 },
  { name: 'too-large', fault: { status: 413, type: 'too_large' }, times: 3 },
  { name: 'disk-full', fault: { status: 403, type: 'cluster_block_exception' }, times: 3 },
  { name: 'half-refused', fault: 'half-refused', times: 3 },
  { name: 'cut-before', fault: 'cut-before', times: 3 },
  { name: 'cut-after-accepting', fault: 'cut-after', times: 3 },
  { name: 'timeout-after-accepting', fault: 'mute-after', times: 1 },
  { name: 'foreign-answer', fault: 'html', times: 3 },
  {
    name: 'refused',
    prepare: ({ proxy }) => proxy.stop(),
    says: /ECONNREFUSED/,
    repair: ({ proxy }) => proxy.start(),
  },
  {
    name: 'wrong-key',
    prepare: ({ proxy }) => {
      proxy.locked = true
    },
    says: /401 \(security_exception\)/,
    repair: ({ proxy }) => {
      proxy.locked = false
    },
  },
  {
    name: 'never-declared',
    undeclared: true,
    says: /there is no index .*ensureIndex/,
    repair: ({ engine, index }) => engine.ensureIndex(index, definition),
  },
]

const played = new Map<string, Played>()
const expected = new Map<string, object>()
const held: string[] = []
const db = useDatabase()
let outbox: Outbox

async function play({ name, fault, times = 0, undeclared, prepare }: Scene): Promise<void> {
  const proxy = new OpenSearchFaults(url)
  await proxy.start()
  const timeoutMs = fault === 'mute-after' ? 2_000 : 10_000
  const engine = opensearch({ url: proxy.url, replicas: 0, timeoutMs, gzip: false })
  const index = `outage_${run}_${name.replaceAll('-', '_')}`.slice(0, 40)
  if (!undeclared) await engine.ensureIndex(index, definition)
  Object.assign(proxy, { fault, times })
  played.set(name, { proxy, engine, index })
  await prepare?.({ proxy, engine, index })
  outbox.subscribe(name, {
    revision: 1,
    types: ['document.*'],
    coalesce: 'latest',
    from: 'beginning',
    batch: { count: 100 },
    sink: searchSink(engine, { index }),
  })
}

const write = (changes: readonly Change[]) => writeChanges(outbox, expected, changes)

const rowsOf = (name: string) =>
  db.query(`select aggregate_id as id, state from outbox.delivery where subscription = $1 order by 1`, [name])

async function heldBy(name: string): Promise<string | false> {
  const [row] = await db.query<{ cause: string | null; says: string | null }>(
    'select held_cause as cause, held_says as says from outbox.subscription where name = $1',
    [name],
  )
  return row?.cause ? (row.says ?? '') : false
}

async function playAll(): Promise<void> {
  outbox = createOutbox({ pool: db.pool })
  for (const scene of scenes) await play(scene)
  await write(states(0, 500, 1))
  await write([[500, { title: 'bad', pages: 'many' }]])
  expected.delete('500')
  await outbox.start({ pollMs: 50, concurrency: 2, upkeep: false })
  for (const { name, repair, says } of scenes) {
    if (repair === undefined) continue
    const words = await eventually(() => heldBy(name), { what: `${name} to be held` })
    if (says?.test(words) && (await rowsOf(name)).length === 0) held.push(name)
  }
  await write([...states(0, 100, 2), ...states(400, 450, 2)])
  await write(Array.from({ length: 50 }, (_, at): Change => [at, undefined]))
  await write([...states(40, 60, 3), ...states(430, 440, 3)])
  for (const { name, repair } of scenes) await repair?.(played.get(name) as Played)
  await drain(outbox, { timeoutMs: 60_000 })
}

async function clear(): Promise<void> {
  await outbox?.close()
  for (const { proxy, engine } of played.values()) {
    await engine.close()
    await proxy.stop()
  }
  await fetch(`${url}/outage_${run}*`, { method: 'DELETE' })
}

if (url === '') it.skip('OpenSearch needs HERMOD_TEST_OPENSEARCH, the URL of a node')
else
  describe('after the outage', () => {
    beforeAll(playAll, 90_000)
    afterAll(clear)

    it.each(scenes)('$name: nothing missing, stale or dead but the bad one', async ({ name }) => {
      const { engine, index } = played.get(name) as Played
      const { documents } = await engine.scan(index)
      const found = Object.fromEntries(documents.map(({ id, hash }) => [id, hash]))
      const wanted = [...expected].map(([id, document]) => [id, documentHash(document)])
      expect(found).toEqual(Object.fromEntries(wanted))
      expect(await rowsOf(name)).toEqual([{ id: '500', state: 'dead' }])
    })

    it('what a person must mend was said in a sentence, and had spent nothing', () => {
      expect(held).toEqual(scenes.filter(({ says }) => says !== undefined).map(({ name }) => name))
    })
  })
