// A search index as a destination: what becomes of events, and what an outage of the index means.

import { connect, createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { DeliveredEvent } from '../../src/delivered-event.ts'
import type { OutboxEvent } from '../../src/event.ts'
import { createOutbox } from '../../src/index.ts'
import { type SearchSinkOptions, searchSink } from '../../src/sinks/search/index.ts'
import { type PostgresSearch, type PostgresSearchOptions, postgresSearch } from '../../src/sinks/search/postgres.ts'
import type { Outcome } from '../../src/sinks/sink.ts'
import { drain, exerciseSink } from '../../src/testing/index.ts'

const db = useDatabase()
const fields = { title: { kind: 'text', weight: 4 }, pages: { kind: 'number' } } as const
let engine: PostgresSearch

beforeAll(async () => {
  engine = postgresSearch({ pool: db.pool })
  await engine.ensureIndex('documents', { fields })
})

let position = 0n

function event(id: string, payload: unknown, { type = 'document.updated', absent = false } = {}): OutboxEvent {
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
    absent,
    payloadText: JSON.stringify(payload),
  })
}

async function deliver(
  events: readonly OutboxEvent[],
  options: Partial<SearchSinkOptions> = {},
  to = engine,
): Promise<string[]> {
  const sink = searchSink(to, { index: 'documents', ...options })
  const { signal } = new AbortController()
  const context = { signal, subscription: 'search', deadlineMs: 30_000, sending: async () => {}, answered: () => {} }
  const outcomes = ((await sink.deliver(events, context)) ?? []) as readonly Outcome[]
  return outcomes.map(({ outcome }) => outcome)
}

const titleOf = async (id: string) => (await engine.get('documents', id))?.document.title

describe('events become documents', () => {
  it('upserts payloads, deletes by name, by absence and by choice, and skips', async () => {
    expect(await deliver([event('u1', { title: 'one' }), event('u2', { title: 'two' })])).toEqual([
      'delivered',
      'delivered',
    ])
    const events = [
      event('u1', null, { type: 'document.deleted' }),
      event('u2', null, { absent: true }),
      event('u3', { title: 'three' }, { type: 'document.viewed' }),
    ]
    const outcomes = await deliver(events, {
      operation: ({ type }) => (type.endsWith('.viewed') ? 'skip' : type.endsWith('.deleted') ? 'delete' : 'upsert'),
    })
    expect(outcomes).toEqual(['delivered', 'delivered', 'delivered'])
    for (const id of ['u1', 'u2', 'u3']) expect(await titleOf(id)).toBeUndefined()
  })

  it('maps and names documents as told; what throws is about one event', async () => {
    const outcomes = await deliver([event('m1', { name: 'one' }), event('m2', null), event('m3', { name: 'three' })], {
      id: ({ aggregateId }) => `mapped-${aggregateId}`,
      map: (one) => ({ title: (one.payload as { name: string }).name }),
    })
    expect(outcomes).toEqual(['delivered', 'rejected', 'delivered'])
    expect(await titleOf('mapped-m3')).toBe('three')
  })

  it('of several events of a document sends the last, and settles the others', async () => {
    const events = [
      event('c1', { title: 'first' }),
      event('c2', { title: 'kept' }),
      event('c1', { title: 'second' }),
      event('c1', { title: 'third' }),
    ]
    expect(await deliver(events)).toEqual(['superseded', 'delivered', 'superseded', 'delivered'])
    expect(await titleOf('c1')).toBe('third')
    const gone = [event('c1', { title: 'fourth' }), event('c1', null, { type: 'document.deleted' })]
    expect(await deliver(gone)).toEqual(['superseded', 'delivered'])
    expect(await titleOf('c1')).toBeUndefined()
  })

  it('nothing is applied behind an event nobody could read', async () => {
    const operation = ({ type }: OutboxEvent) => {
      if (type === 'document.odd') throw new Error('odd')
      return 'upsert' as const
    }
    const events = [
      event('b1', { title: 'odd' }, { type: 'document.odd' }),
      event('b1', { title: 'behind' }),
      event('b2', { title: 'other' }),
    ]
    expect(await deliver(events, { operation })).toEqual(['rejected', 'retry', 'delivered'])
  })

  it('a last state that is rejected leaves the one before it', async () => {
    const events = [event('f1', { title: 'good' }), event('f1', { title: 'bad', pages: 'many' })]
    expect(await deliver(events)).toEqual(['delivered', 'rejected'])
    expect(await titleOf('f1')).toBe('good')
  })

  it('a reference event without rows is rejected with a sentence', async () => {
    const sink = searchSink(engine, { index: 'documents' })
    const { signal } = new AbortController()
    const context = { signal, subscription: 's', deadlineMs: 1_000, sending: async () => {}, answered: () => {} }
    const [outcome] = ((await sink.deliver([event('r1', null)], context)) ?? []) as Outcome[]
    expect(outcome).toMatchObject({ outcome: 'rejected', message: /load\(\)/ })
  })

  it('through the whole engine: emitted, loaded, searchable, deleted', async () => {
    const outbox = createOutbox({ pool: db.pool })
    const rows = new Map([['7', { title: 'Searchable within a breath' }]])
    outbox.subscribe('search', {
      revision: 1,
      types: ['document.*'],
      coalesce: 'latest',
      from: 'beginning',
      sink: searchSink(engine, { index: 'documents' }),
      load: async () => rows,
    })
    const emit = () =>
      outbox.transaction((tx) => outbox.emit(tx, { type: 'document.updated', aggregate: ['document', 7] }))
    await emit()
    await drain(outbox)
    expect((await engine.search('documents', { query: 'searchable breath' })).total).toBe(1)
    rows.clear()
    await emit()
    await drain(outbox)
    expect((await engine.search('documents', { query: 'searchable breath' })).total).toBe(0)
    await outbox.close()
  })

  it('its tables cannot be captured: it would hear itself', async () => {
    const outbox = createOutbox({ pool: db.pool })
    const sink = searchSink(engine, { index: 'documents' })
    outbox.subscribe('again', { revision: 1, types: ['document.*'], sink })
    expect(sink.tables).toContain('search."documents_g1"')
    await expect(outbox.watch('search."documents_g1"', { type: 'document' })).rejects.toThrow('would hear itself')
  })
})

describe('two sinks on the same documents', () => {
  it('neither deadlock nor lose anything', async () => {
    const other = postgresSearch({ connectionString: db.url })
    const ids = Array.from({ length: 40 }, (_, at) => `s${at}`)
    const runs: Promise<string[]>[] = []
    for (let round = 0; round < 20; round++) {
      const order = round % 2 === 0 ? ids : ids.toReversed()
      const events = order.map((id) => event(id, { title: `wordround${round} ${id}` }))
      runs.push(deliver(events, {}, round % 3 === 0 ? other : engine))
    }
    const outcomes = (await Promise.all(runs)).flat()
    expect(outcomes.filter((name) => name !== 'delivered' && name !== 'superseded')).toEqual([])
    for (const id of ids) expect(await titleOf(id)).toBe(`wordround19 ${id}`)
    await other.close()
  })
})

describe('an outage', () => {
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })

  function opened(options: PostgresSearchOptions): PostgresSearch {
    const made = postgresSearch(options)
    closers.push(() => made.close())
    return made
  }

  it('a pool that was ended is unavailable', async () => {
    const pool = new pg.Pool({ connectionString: db.url })
    await pool.end()
    expect(await deliver([event('o1', { title: 'x' })], {}, opened({ pool }))).toEqual(['unavailable'])
  })

  it('nothing that listens is unavailable', async () => {
    const url = new URL(db.url)
    url.port = String(await freePort())
    const to = opened({ connectionString: url.href })
    const events = [event('o2', { title: 'x' }), event('o3', null, { type: 'document.deleted' })]
    expect(await deliver(events, {}, to)).toEqual(['unavailable', 'unavailable'])
  })

  it('a role that may not write, a wrong database and a missing schema are misconfigured', async () => {
    await db.query(`create role search_reader login`)
    const url = new URL(db.url)
    url.username = 'search_reader'
    const database = new URL(db.url)
    database.pathname = '/no_such_database'
    for (const options of [
      { connectionString: url.href },
      { connectionString: database.href },
      { connectionString: db.url, schema: 'nowhere' },
    ]) {
      expect(await deliver([event('o4', { title: 'x' })], {}, opened(options))).toEqual(['misconfigured'])
    }
    await expect(
      opened({ connectionString: url.href, schema: 'own' }).ensureIndex('documents', { fields }),
    ).rejects.toMatchObject({ code: 'HMD_SEARCH_SETUP' })
    await db.query('drop role search_reader')
  })

  it('a role that does not exist is misconfigured', async () => {
    const url = new URL(db.url)
    url.username = 'nobody_at_all'
    url.password = 'secret-password'
    const to = opened({ connectionString: url.href })
    expect(await deliver([event('o5', { title: 'x' })], {}, to)).toEqual(['misconfigured'])
  })
})

/** A door in front of the database that can be shut, held and opened again. */
class Door {
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #held = false

  constructor(to: URL) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      const inside = connect(Number(to.port), to.hostname)
      inside.on('error', () => socket.destroy())
      inside.on('data', (data) => this.#held || socket.write(data))
      socket.on('data', (data) => inside.write(data))
      socket.on('close', () => inside.destroy())
      inside.on('close', () => socket.destroy())
    })
  }

  listen(port = 0): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(port, '127.0.0.1', () => {
        resolve((this.#server.address() as { port: number }).port)
      })
    })
  }

  /** Connections are cut and refused. */
  async shut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
    await closed
  }

  /** Answers no longer come through. */
  hold(held: boolean): void {
    this.#held = held
    if (held) return
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('the suite for sinks', () => {
  let door: Door
  let port = 0
  beforeAll(async () => {
    door = new Door(new URL(db.url))
    port = await door.listen()
    db.closeAtEnd(() => door.shut())
  })

  const { leftOut } = exerciseSink(
    async () => {
      const url = new URL(db.url)
      url.host = `127.0.0.1:${port}`
      await engine.ensureIndex('documents', { fields })
      return searchSink(postgresSearch({ connectionString: url.href }), { index: 'documents' })
    },
    {
      test: it,
      event: (at) => ({ aggregate: ['document', `x${at}`], payload: { title: `sample ${at}` } }),
      bad: { aggregate: ['document', 'bad'], payload: { pages: 'hermod-sample-payload' } },
      oversize: { aggregate: ['document', 'x'.repeat(600)], payload: { title: 'long id' } },
      accepted: async () => (await engine.scan('documents', { limit: 5_000 })).documents.map(({ id }) => id),
      secrets: [],
      down: async () => {
        await door.shut()
        return () => door.listen(port)
      },
      hang: () => {
        door.hold(true)
        return () => door.hold(false)
      },
      credentials: async () => {
        await db.query('alter table search.generation rename to hidden')
        return () => db.query('alter table search.hidden rename to generation')
      },
      throttle: 'PostgreSQL never asks for a pause',
    },
  )

  it('leaves out only what PostgreSQL does not do', () => {
    expect(leftOut.map(({ why }) => why)).toEqual(['PostgreSQL never asks for a pause'])
  })
})
