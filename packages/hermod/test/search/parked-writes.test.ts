// A search engine with tasks behind the search sink: what is parked, what waits, and a worker that is
// killed while its task runs. The kills use the built library (`npm run build` first).

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { engineRoot } from '../../../../test/support/case.ts'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { session } from '../../../../test/support/session.ts'
import { DeliveredEvent } from '../../src/delivered-event.ts'
import type { OutboxEvent } from '../../src/event.ts'
import { createOutbox } from '../../src/index.ts'
import { searchSink } from '../../src/sinks/search/index.ts'
import { meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { isParked, type Outcome } from '../../src/sinks/sink.ts'
import { drain, exerciseSink } from '../../src/testing/index.ts'
import { type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch/double.ts'

const db = useDatabase()
const definition = { fields: { title: { kind: 'text' } } } as const

async function scene(index: string) {
  const double = await meilisearchDouble()
  const engine = meilisearch({ url: double.url })
  await engine.ensureIndex(index, definition)
  onTestFinished(async () => {
    await engine.close()
    await double.stop()
  })
  const sink = searchSink(engine, { index })
  return { double, engine, sink }
}

let position = 0n
function event(id: string, type: string, payload: unknown): OutboxEvent {
  position++
  return new DeliveredEvent({
    id: position,
    position,
    lane: 0,
    type,
    aggregateType: 'document',
    aggregateId: id,
    version: 1,
    key: null,
    headersText: '{}',
    createdAt: Date.now(),
    attempt: 1,
    absent: false,
    payloadText: JSON.stringify(payload),
  })
}

const updated = (id: string, title: unknown = id) => event(id, 'document.updated', { id, title })
const deleted = (id: string) => event(id, 'document.deleted', null)

const context = () => ({
  signal: AbortSignal.timeout(10_000),
  subscription: 's',
  deadlineMs: 10_000,
  sending: async () => {},
  answered: () => {},
})

/** Calls that add documents to an index of the sink, deletions remembered elsewhere apart. */
const additions = ({ requests }: MeilisearchDouble, word: string) =>
  requests.filter(({ method, path, body }) => method === 'POST' && path.endsWith('/documents') && body.includes(word))
    .length

describe('the search sink', () => {
  it('parks upserts and deletions of a call under one handle', async () => {
    const { double, engine, sink } = await scene('joined')
    await engine.upsert('joined', [{ id: 'old', version: 0n, json: '{"title":"old"}' }])
    double.queue.hold()
    const result = await sink.deliver([updated('new'), deleted('old')], context())
    const handle = isParked(result) ? result.parked : ''
    const other = await sink.deliver([updated('third')], context())
    const handles = [handle, isParked(other) ? other.parked : '']
    expect(await sink.poll?.(handles, context())).toEqual([undefined, undefined])
    double.queue.release()
    await eventually(async () => !(await sink.poll?.(handles, context()))?.includes(undefined))
    expect(await engine.get('joined', 'old')).toBeUndefined()
    expect((await engine.get('joined', 'new'))?.document.title).toBe('new')
    expect(await sink.poll?.(['[]', 'x', handle], context())).toMatchObject([
      { outcome: 'split', code: 'HANDLE_FOREIGN' },
      { outcome: 'split' },
      { outcome: 'delivered' },
    ])
  })

  it('waits for the task where an event of the call is settled already', async () => {
    const { engine, sink } = await scene('mixed')
    const bad = event('bad', 'document.updated', null)
    const outcomes = await sink.deliver([updated('good'), bad, deleted('gone')], context())
    const names = (outcomes as readonly Outcome[]).map(({ outcome }) => outcome)
    expect(names).toEqual(['delivered', 'rejected', 'delivered'])
    expect((await engine.get('mixed', 'good'))?.document.title).toBe('good')
  })

  it('through the whole engine: emitted, parked, searchable', async () => {
    const { double, engine, sink } = await scene('whole')
    const outbox = createOutbox({ pool: db.pool }).subscribe('whole', {
      revision: 1,
      types: ['whole.*'],
      sink,
      coalesce: 'latest',
      from: 'now',
    })
    double.queue.delayMs = 30
    await drain(outbox)
    await outbox.transaction(async (tx) => {
      for (const id of ['a', 'b', 'c'])
        await outbox.emit(tx, {
          type: 'whole.updated',
          aggregate: ['document', id],
          payload: { id, title: `Letter ${id}` },
        })
    })
    await drain(outbox)
    const { hits } = await engine.search('whole', { query: 'letter' })
    expect(hits.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c'])
    await db.query(`delete from outbox.subscription where name = 'whole'`)
  })
})

describe('is a good sink', async () => {
  const double = await meilisearchDouble()
  const engine = () => meilisearch({ url: double.url })
  const stopped = async () => {
    await double.stop()
    return () => double.start()
  }
  exerciseSink(
    async () => {
      await engine().ensureIndex('exercised', definition)
      return searchSink(engine(), { index: 'exercised' })
    },
    {
      test: (name, run) => it(name, run),
      bad: 'whatever is an object is a document for Meilisearch',
      oversize: 'the limit is the server’s and large; the engine’s own cases are about it',
      down: stopped,
      hang: () => double.spoil('hang'),
      credentials: 'the double asks for no key',
      throttle: 'Meilisearch never asks for a pause',
    },
  )
  it('and its double ends', () => double.stop())
})

describe('a worker that is killed', () => {
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  /** A worker of the built library in a process of its own. */
  function elsewhere(url: string, index: string): ChildProcess {
    const script = `
      import pg from 'pg'
      import { createOutbox } from '${engineRoot}/dist/index.js'
      import { searchSink } from '${engineRoot}/dist/sinks/search/index.js'
      import { meilisearch } from '${engineRoot}/dist/sinks/search/meilisearch.js'
      const pool = new pg.Pool({ connectionString: '${db.url}', max: 6 })
      const sink = searchSink(meilisearch({ url: '${url}' }), { index: '${index}' })
      await createOutbox({ pool }).subscribe('${index}', {
        revision: 1, types: ['${index}.*'], from: 'beginning', sink, callMs: 800,
      }).start({ leaseMs: 1000, upkeep: false, concurrency: 1 })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: engineRoot,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    children.push(child)
    return child
  }

  async function kill(child: ChildProcess): Promise<void> {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  async function emitted(index: string) {
    const { double, engine, sink } = await scene(index)
    const outbox = createOutbox({ pool: db.pool }).subscribe(index, {
      revision: 1,
      types: [`${index}.*`],
      from: 'beginning',
      sink,
      callMs: 800,
    })
    await outbox.runOnce({ deadlineMs: 10_000, upkeep: false })
    const payload = { id: 'k', title: `${index} title` }
    await outbox.transaction((tx) =>
      outbox.emit(tx, { type: `${index}.updated`, aggregate: ['document', 'k'], payload }),
    )
    double.queue.hold()
    const child = elsewhere(double.url, index)
    await eventually(() => additions(double, `${index} title`) === 1, { timeoutMs: 20_000 })
    const takeOver = async () => {
      const worker = await outbox.start({ leaseMs: 1_000, upkeep: false, concurrency: 1 })
      onTestFinished(() => worker.stop())
    }
    return { double, engine, child, takeOver, title: payload.title }
  }

  it('after the record: the next one asks, and sends nothing', { timeout: 40_000 }, async () => {
    const { double, engine, child, takeOver, title } = await emitted('asked')
    const parked = `select from outbox.lane l, outbox.parked_in('asked', l.lane)`
    await eventually(async () => (await db.query(parked)).length === 1)
    await kill(child)
    const polls = double.requests.length
    await takeOver()
    await eventually(() => double.requests.length > polls + 2)
    double.queue.release()
    await eventually(async () => (await db.query(parked)).length === 0)
    expect((await engine.get('asked', 'k'))?.document.title).toBe(title)
    expect(additions(double, title), 'writes of the document').toBe(1)
  })

  it('before the record: the next one sends again', { timeout: 40_000 }, async () => {
    const blocker = await session(db, 'blocker')
    const { double, engine, child, takeOver, title } = await emittedBehind(blocker)
    await kill(child)
    // The statement of a process that is gone would go on waiting, and write in the end.
    await db.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${parking}`)
    await eventually(async () => (await db.query(waiting)).length === 0)
    await blocker.rollback()
    await db.query('drop trigger slow on outbox.lane')
    await takeOver()
    await eventually(() => additions(double, title) === 2)
    double.queue.release()
    const states = `select state from outbox.status where subscription = 'again'`
    await eventually(async () => (await db.query(states))[0]?.state === 'delivered')
    expect((await engine.get('again', 'k'))?.document.title).toBe(title)
    const rows = await db.query(`select from outbox.delivery where subscription = 'again'`)
    expect(rows, 'no failure is on record').toEqual([])
  })

  const parking = `wait_event = 'advisory' and query like '%outbox.park(%'`
  const waiting = `select from pg_stat_activity where ${parking}`

  /** The record waits for a lock: the kill comes in between. */
  async function emittedBehind(blocker: Awaited<ReturnType<typeof session>>) {
    await db.query(`create or replace function outbox.slow_park() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(77); return new; end $$`)
    await db.query(`create trigger slow before update of parked on outbox.lane
      for each row when (new.parked is distinct from old.parked) execute function outbox.slow_park()`)
    await blocker.begin()
    await blocker.run('select pg_advisory_xact_lock(77)')
    const scene = await emitted('again')
    await eventually(async () => (await db.query(waiting)).length === 1)
    return scene
  }
})
