// Outages of Meilisearch under an import of 500 documents and the edits that follow, each through a
// real subscription: no document is missing or stale at the end, only the truly bad ones are dead, and
// what a person must mend is said in a sentence and spends nothing.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { documentHash, searchSink } from '../../src/sinks/search/index.ts'
import { type Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { drain } from '../../src/testing/index.ts'
import { type Change, states, writeChanges } from '../support/changes.ts'
import { type Fault, type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch/double.ts'
import { Refusal } from '../support/meilisearch/double-store.ts'
import { definition, isWrite, key } from '../support/meilisearch/open-index.ts'
import { slowTasks } from '../support/slow-tasks.ts'

const db = useDatabase()

interface Scene {
  readonly name: string
  /** What the first so many writes meet. */
  readonly fault?: Fault
  readonly times?: number
  readonly undeclared?: boolean
  prepare?(double: MeilisearchDouble): unknown
  /** Called once the subscription is held, saying this; every scene with it must be. */
  readonly says?: RegExp
  repair?(played: Played): unknown
}

const noSpace = new Refusal(422, 'no_space_left_on_device', 'No space left on device', 'system')

/** Spoils the first so many tasks that write documents. */
const tasksFail = (times: number, refusal: Refusal) => (double: MeilisearchDouble) => {
  let left = times
  double.queue.fault = ({ indexUid, type }) => {
    const fits = indexUid === 'documents' && type === 'documentAdditionOrUpdate'
    return fits && left-- > 0 ? refusal : undefined
  }
}

const scenes: readonly Scene[] = [
  { name: 'down', fault: new Refusal(503, 'internal', 'not now', 'internal'), times: 3 },
  { name: 'cut-after-accepting', fault: 'swallowed', times: 3 },
  { name: 'timeout-after-accepting', fault: 'mute', times: 2 },
  { name: 'tasks-fail', prepare: tasksFail(2, new Refusal(500, 'internal', 'MDB', 'internal')) },
  {
    name: 'slow-and-restarted',
    prepare: (double) => {
      setTimeout(() => double.restart(), 300)
    },
  },
  { name: 'disk-full', prepare: tasksFail(3, noSpace) },
  {
    name: 'refused',
    prepare: (double) => double.stop(),
    says: /ECONNREFUSED/,
    repair: ({ double }) => double.start(),
  },
  {
    name: 'wrong-key',
    prepare: (double) => {
      double.key = 'another key'
    },
    says: /API key is invalid/,
    repair: ({ double }) => {
      double.key = key
    },
  },
  {
    name: 'never-declared',
    undeclared: true,
    says: /there is no index documents\..*ensureIndex/,
    repair: ({ engine }) => engine.ensureIndex('documents', definition),
  },
  {
    name: 'index-deleted',
    prepare: (double) => double.store.run('documents', { type: 'indexDeletion' }),
  },
]

interface Played {
  readonly double: MeilisearchDouble
  readonly engine: Meilisearch
}

const played = new Map<string, Played>()
const expected = new Map<string, object>()
const held: string[] = []
let outbox: Outbox

async function play({ name, fault, times = 0, undeclared, prepare }: Scene): Promise<void> {
  const double = await meilisearchDouble({ key })
  if (!undeclared) await declare(double.url)
  const engine = meilisearch({ url: double.url, key, timeoutMs: fault === 'mute' ? 400 : 10_000 })
  double.queue.delayMs = slowTasks
  if (fault !== undefined) double.spoil(fault, isWrite, times)
  await prepare?.(double)
  played.set(name, { double, engine })
  outbox.subscribe(name, {
    revision: 1,
    types: ['document.*'],
    coalesce: 'latest',
    from: 'beginning',
    batch: { count: 100 },
    sink: searchSink(engine, { index: 'documents' }),
  })
}

async function declare(url: string): Promise<void> {
  const engine = meilisearch({ url, key })
  await engine.ensureIndex('documents', definition)
  await engine.close()
}

const write = (changes: readonly Change[]) => writeChanges(outbox, expected, changes)

async function rowsOf(name: string) {
  return db.query(`select aggregate_id as id, state from outbox.delivery where subscription = $1 order by 1`, [name])
}

async function nothingIsRetried(): Promise<boolean> {
  return (await db.query(`select from outbox.delivery where state = 'retrying'`)).length === 0
}

beforeAll(async () => {
  outbox = createOutbox({ pool: db.pool })
  for (const scene of scenes) await play(scene)
  await write(states(0, 500, 1))
  // The first is seen here, the second only by the task, which then changes nothing at all.
  await write([[500, { title: 'bad', pages: 'many' }]])
  await write([[501, { title: 'worse', _geo: { lat: 'north' } }]])
  expected.delete('500')
  expected.delete('501')
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
  await drain(outbox, { timeoutMs: 90_000 })
  // A good document whose task went in one batch with a bad one's failed with it, and is tried again.
  await eventually(nothingIsRetried, { timeoutMs: 15_000, what: 'retries to end' })
  // More than the waits in it together: on a loaded machine all of them are long.
}, 180_000)

afterAll(async () => {
  await outbox.close()
  for (const { double, engine } of played.values()) {
    await engine.close()
    await double.stop()
  }
})

async function heldBy(name: string): Promise<string | false> {
  const [row] = await db.query<{ cause: string | null; says: string | null }>(
    'select held_cause as cause, held_says as says from outbox.subscription where name = $1',
    [name],
  )
  return row?.cause ? (row.says ?? '') : false
}

describe('after the outage', () => {
  it.each(scenes)('$name: nothing missing, stale or dead but the bad ones', async ({ name }) => {
    const { engine } = played.get(name) as Played
    const { documents } = await engine.scan('documents')
    const found = Object.fromEntries(documents.map(({ id, hash }) => [id, hash]))
    const wanted = [...expected].map(([id, document]) => [id, documentHash(document)])
    expect(found).toEqual(Object.fromEntries(wanted))
    expect(await rowsOf(name)).toEqual([
      { id: '500', state: 'dead' },
      { id: '501', state: 'dead' },
    ])
  })

  it('what a person must mend was said in a sentence, and had spent nothing', () => {
    expect(held).toEqual(scenes.filter(({ says }) => says !== undefined).map(({ name }) => name))
  })
})
