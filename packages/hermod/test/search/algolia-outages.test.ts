// Outages of Algolia under an import of 500 documents and the edits that follow, each through a real
// subscription: no document is missing or stale at the end, and only the truly bad one is dead.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { type AlgoliaSearch, algolia } from '../../src/sinks/search/algolia.ts'
import { documentHash, searchSink } from '../../src/sinks/search/index.ts'
import { drain } from '../../src/testing/index.ts'
import { AlgoliaDouble, type Fault } from '../support/algolia/double.ts'
import { type Change, states, writeChanges } from '../support/changes.ts'
import { slowTasks } from '../support/slow-tasks.ts'

const db = useDatabase()
const fields = { title: { kind: 'text' }, pages: { kind: 'number' } } as const

interface Scene {
  readonly name: string
  /** What the first so many batches meet. */
  readonly fault?: Fault
  readonly times?: number
  prepare?(double: AlgoliaDouble): unknown
  /** Called once the subscription is held; every scene with it must be. */
  repair?(double: AlgoliaDouble): unknown
}

let reopen = async () => {}

const scenes: readonly Scene[] = [
  { name: 'rate-limit', fault: { status: 429, retryAfter: '1' }, times: 3 },
  { name: 'down', fault: { status: 503 }, times: 8 },
  { name: 'cut-after-accepting', fault: { cut: 'after' }, times: 8 },
  { name: 'timeout-after-accepting', fault: { hang: true }, times: 6 },
  { name: 'foreign-answer', fault: { text: '<html>' }, times: 8 },
  {
    name: 'slow-tasks-in-any-order',
    prepare: ({ application }) => {
      application.taskMs = 30
      application.disorder = true
    },
  },
  {
    name: 'refused',
    prepare: async (double) => {
      reopen = await double.shut()
    },
    repair: () => reopen(),
  },
  {
    name: 'quota-in-the-middle',
    prepare: (double) => {
      double.recordsMax = 250
    },
    repair: (double) => {
      expect(double.application.recordCount).toBeGreaterThan(0)
      double.recordsMax = Number.POSITIVE_INFINITY
    },
  },
  {
    name: 'wrong-key',
    prepare: (double) => {
      double.fault = ({ path }) => {
        return path.endsWith('/batch') ? { status: 403, message: 'Invalid API key' } : undefined
      }
    },
    repair: (double) => {
      double.fault = undefined
    },
  },
]

interface Played {
  readonly double: AlgoliaDouble
  readonly engine: AlgoliaSearch
  /** Faults that were not met. */
  faultsLeft(): number
}

const played = new Map<string, Played>()
const expected = new Map<string, object>()
let outbox: Outbox

async function play({ name, fault, times = 0, prepare }: Scene): Promise<void> {
  const double = await AlgoliaDouble.start()
  const { appId, apiKey, hosts } = double
  const engine = algolia({ appId, apiKey, hosts })
  await engine.ensureIndex('documents', { fields })
  double.application.taskMs = slowTasks
  const hangs = fault !== undefined && 'hang' in fault
  const writer = algolia({ appId, apiKey, hosts, timeoutMs: hangs ? 300 : 10_000 })
  let left = times
  double.fault = ({ path }) => {
    return fault !== undefined && path.endsWith('/batch') && left-- > 0 ? fault : undefined
  }
  await prepare?.(double)
  played.set(name, { double, engine, faultsLeft: () => left })
  outbox.subscribe(name, {
    revision: 1,
    types: ['document.*'],
    coalesce: 'latest',
    from: 'beginning',
    batch: { count: 100 },
    sink: searchSink(writer, { index: 'documents' }),
  })
}

const write = (changes: readonly Change[]) => writeChanges(outbox, expected, changes)

beforeAll(async () => {
  outbox = createOutbox({ pool: db.pool })
  await Promise.all(scenes.map(play))
  await write(states(0, 500, 1))
  await write([[500, { title: 'bad', pages: 'many' }]])
  expected.delete('500')
  await outbox.start({ pollMs: 50, concurrency: 2, upkeep: false })
  for (const { name, repair } of scenes) {
    if (repair === undefined) continue
    await eventually(async () => (await heldBy(name)) !== undefined, { what: `${name} to be held` })
  }
  await write([...states(0, 100, 2), ...states(400, 450, 2)])
  await write(Array.from({ length: 50 }, (_, at): Change => [at, undefined]))
  await write([...states(40, 60, 3), ...states(430, 440, 3)])
  for (const { name, repair } of scenes) await repair?.((played.get(name) as Played).double)
  await drain(outbox, { timeoutMs: 60_000 })
}, 120_000)

afterAll(async () => {
  await outbox.close()
  for (const { double, engine } of played.values()) {
    await engine.close()
    await double.stop()
  }
})

async function heldBy(name: string): Promise<string | undefined> {
  const [row] = await db.query<{ cause: string | null }>(
    'select held_cause as cause from outbox.subscription where name = $1',
    [name],
  )
  return row?.cause ?? undefined
}

describe('after the outage', () => {
  it.each(scenes)('$name: nothing missing, nothing stale, nothing dead but the bad one', async ({ name, fault }) => {
    const { engine, faultsLeft } = played.get(name) as Played
    const { documents } = await engine.scan('documents')
    const found = Object.fromEntries(documents.map(({ id, hash }) => [id, hash]))
    const wanted = [...expected].map(([id, document]) => [id, documentHash(document)])
    expect(found).toEqual(Object.fromEntries(wanted))
    const rows = await db.query(`select aggregate_id as id, state from outbox.delivery where subscription = $1`, [name])
    expect(rows).toEqual([{ id: '500', state: 'dead' }])
    if (fault !== undefined) expect(faultsLeft()).toBeLessThanOrEqual(0)
  })
})
