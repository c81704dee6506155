// Operators beside deliveries: many decisions at once, and locks that somebody forgot to give back.

import type { Socket } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { quiet, type Stage, stage } from './stage.ts'

/** What came of so many rejections: every event of `bulk` up to its cursor is a dead letter. */
const DEAD = `insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state,
    attempts, updated_at)
  select 'bulk', g.lane, g.pos, g.event_id, e.aggregate_type, e.aggregate_id, g.hash, 'dead', 6, outbox.clock()
    from outbox.log g join outbox.event e on e.id = g.event_id`

/** How long each event of `live` took from emit to its sink, while something else goes on. */
class Heartbeats {
  readonly #s: Stage
  readonly #emitted = new Map<string, number>()
  readonly tookMs: number[] = []
  #stopped = false
  #running: Promise<void> | undefined

  constructor(s: Stage) {
    this.#s = s
  }

  readonly sink = async (events: readonly { aggregateId: string }[]): Promise<void> => {
    for (const { aggregateId } of events) {
      const atMs = this.#emitted.get(aggregateId)
      if (atMs !== undefined) this.tookMs.push(performance.now() - atMs)
    }
  }

  start(): void {
    this.#running = this.#run()
    // A case that fails leaves it running.
    this.#running.catch(() => {})
    onTestFinished(() => {
      this.#stopped = true
    })
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const id = `beat-${n}`
      await this.#s.emit([id], 'live.beat')
      this.#emitted.set(id, performance.now())
      await eventually(() => this.tookMs.length > n || this.#stopped, { timeoutMs: 60_000, what: id })
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  /** The machine may pause for others: one in ten is not looked at. */
  get mostMs(): number {
    const sorted = [...this.tookMs].sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * 0.9)] ?? Number.POSITIVE_INFINITY
  }
}

async function serve(s: Stage, dead: number) {
  await s.bulk(dead, `'doc.changed'`, `'dead' || n`)
  const beats = new Heartbeats(s)
  const bulk: string[] = []
  const sink = async (events: readonly { aggregateId: string }[]) => {
    for (const { aggregateId } of events) bulk.push(aggregateId)
  }
  const outbox = s.outbox(sink as never, { name: 'bulk', subscription: { types: ['doc.*'], from: 'now' } })
  outbox.subscribe('live', { revision: 1, types: ['live.*'], from: 'now', sink: beats.sink as never })
  await outbox.runOnce({ upkeep: false })
  await s.db.query(DEAD)
  return { outbox, beats, bulk }
}

const many = 10_000
const BY = { actor: 'ada', reason: 'the destination is back' }

export const retryMany = defineCase('operators-in-bulk: retry', (env) => decideMany(env, 'retry'))
export const discardMany = defineCase('operators-in-bulk: discard', (env) => decideMany(env, 'discard'))

async function decideMany(env: Parameters<typeof stage>[0], verb: 'retry' | 'discard'): Promise<void> {
  const s = await stage(env)
  const { outbox, beats, bulk } = await serve(s, many)
  const worker = await outbox.start({ ...quiet, concurrency: 2 })
  beats.start()
  await eventually(() => beats.tookMs.length > 2)
  const beganMs = performance.now()
  const result = await outbox[verb]('bulk', { state: 'dead' }, { ...BY, limit: many, requestId: 'once' })
  const tookMs = performance.now() - beganMs
  await beats.stop()
  expect(result).toMatchObject({ matching: many, [verb === 'retry' ? 'retried' : 'discarded']: many })
  // About a second on a quiet machine; row by row it took minutes.
  expect(tookMs, `ms for ${many} rows`).toBeLessThan(20_000)
  expect(beats.mostMs, 'another subscription beside it').toBeLessThan(200)
  if (verb === 'retry') await eventually(() => bulk.length === many, { timeoutMs: 30_000, what: 'all of them' })
  await worker.stop()
  const audit =
    await s.db.query(`select count::int, (after -> 'positions') is not null as positions, after ? 'open' as open
    from outbox.audit where request_id = 'once'`)
  expect(audit, 'one decision').toEqual([{ count: many, positions: true, open: false }])
  await holds(s.db, 'I1', 'I5')
}

/** A session that locked a lane and forgot it: only that lane waits, and whoever settles it. */
export const laneLock = defineCase('lane-lock-beside-numbering', async (env) => {
  const s = await stage(env)
  const { outbox, beats } = await serve(s, 1)
  const worker = await outbox.start({ ...quiet, concurrency: 2 })
  const operator = await session(s.db, 'operator')
  await operator.begin()
  await operator.run(`select from outbox.lane where subscription = 'bulk' for update`)
  for (let n = 0; n < 20; n++) await s.emit([`held-${n}`])
  beats.start()
  await eventually(() => beats.tookMs.length > 10, { timeoutMs: 5_000, what: 'events of another subscription' })
  await beats.stop()
  expect(beats.mostMs, 'another subscription beside it').toBeLessThan(200)
  const numbered = 'select count(*) = (select count(*) from outbox.event) as all from outbox.log'
  await eventually(async () => (await s.db.query(numbered))[0]?.all === true, { what: 'numbering beside it' })
  await operator.rollback()
  await eventually(async () => (await s.open('bulk')) === 0, { what: 'the held lanes' })
  await worker.stop()
  await holds(s.db, 'I1', 'I5')
})

/** A step that wants a new leaf of the log while somebody analyses it: it goes on in the leaf there is. */
export const leafLock = defineCase('lane-lock-beside-numbering: a leaf is wanted', async (env) => {
  const s = await stage(env)
  await s.change('a')
  await s.db.query('update outbox.step set pos = 985000')
  const analyst = await session(s.db, 'analyst')
  await analyst.begin()
  await analyst.run('lock table outbox.log in share update exclusive mode')
  await s.emit(['b'])
  const beganMs = performance.now()
  expect(await s.db.query('select numbered from outbox.sequence()'), 'numbered beside it').toEqual([{ numbered: 1 }])
  expect(performance.now() - beganMs).toBeLessThan(2_000)
  await analyst.rollback()
  await s.change('c')
  const [leaf] = await s.db.query(`select max(to_value)::int as ends from outbox.partition where parent = 'log'`)
  expect(leaf?.ends, 'the leaf it wanted').toBeGreaterThan(1_000_001)
})

/**
 * A worker whose process stands still while a large answer is sent to it: what it holds is a snapshot, no lock.
 * Numbering goes on at once, its lanes elsewhere once their lease is over.
 */
export const frozenReader = defineCase('frozen-reader', async (env) => {
  const s = await stage(env)
  const { beats } = await serve(s, 1)
  await s.db.query(`insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload)
    select 200000, 'doc.large', 'doc', 'large' || n, to_json(repeat(md5(n::text), 6250)) from generate_series(1, 100) n`)
  await s.step()
  const frozen = await session(s.db, 'frozen')
  const lanes = await frozen.run(`select lane, fence::text, pos::text from outbox.claim('bulk', 1, 'frozen', 16, 2000)`)
  expect(lanes.length, 'lanes it has').toBeGreaterThan(10)
  const socket = (frozen.client as unknown as { connection: { stream: Socket } }).connection.stream
  const read = frozen.start(
    `select * from outbox.read('bulk', 1, $1::smallint[], $2::bigint[], 1000, 16777216, 10000,
    false, $3::boolean[])`,
    [lanes.map((l) => l.lane), lanes.map((l) => l.pos), lanes.map(() => false)],
  )
  socket.pause()
  const stuck = `select wait_event = 'ClientWrite' as stuck from pg_stat_activity where pid = ${frozen.pid}`
  await eventually(async () => (await s.db.query(stuck))[0]?.stuck === true, { what: 'an answer nobody reads' })
  const got: string[] = []
  const other = env.engine.createOutbox({ pool: s.db.pool })
  const sink = async (events: readonly { aggregateId: string }[]) => void got.push(...events.map((e) => e.aggregateId))
  other.subscribe('bulk', { revision: 1, types: ['doc.*'], from: 'now', sink: sink as never })
  other.subscribe('live', { revision: 1, types: ['live.*'], from: 'now', sink: beats.sink as never })
  const worker = await other.start({ ...quiet, concurrency: 2 })
  beats.start()
  await eventually(() => beats.tookMs.length > 20, { what: 'numbering beside it' })
  await beats.stop()
  expect(beats.mostMs, 'another subscription beside it').toBeLessThan(200)
  await s.clock.advance(3_000)
  await eventually(() => new Set(got).size >= 100, { timeoutMs: 20_000, what: 'its lanes, elsewhere' })
  expect((await s.db.query(stuck))[0], 'it still stands').toEqual({ stuck: true })
  await worker.stop()
  socket.resume()
  await read.promise
  await holds(s.db, 'I1', 'I5')
})

/** Died between two of its transactions: the same request id goes on where it was. */
export const brokeOff = defineCase('operators-in-bulk: broken off', async (env) => {
  const s = await stage(env)
  const { outbox } = await serve(s, 1_500)
  let left = 2
  const pool = {
    query: (config: never) => s.db.pool.query(config),
    connect: () => (left-- > 0 ? s.db.pool.connect() : Promise.reject(new Error('the process died'))),
  }
  const { retry } = await env.engine.load<typeof import('../../../src/desk/retry.ts')>('desk/retry.ts')
  const options = { ...BY, limit: 2_000, requestId: 'r1' }
  await expect(retry(pool as never, 'bulk', {}, options)).rejects.toThrow('the process died')
  const counts = `select count::int, jsonb_array_length(after -> 'positions') as positions, after ? 'open' as open
    from outbox.audit where request_id = 'r1'`
  expect(await s.db.query(counts), 'what is known of half a decision').toEqual([
    { count: 1_000, positions: 1_000, open: true },
  ])
  expect(await outbox.retry('bulk', {}, options), 'the rest').toMatchObject({ retried: 1_500, repeated: false })
  expect(await s.db.query(counts)).toEqual([{ count: 1_500, positions: 1_500, open: false }])
  expect(await outbox.retry('bulk', {}, options)).toMatchObject({ retried: 1_500, repeated: true })
  const [row] = await s.db.query(`select count(distinct p)::int as once from outbox.audit a
    cross join jsonb_array_elements_text(a.after -> 'positions') p`)
  expect(row, 'each row once').toEqual({ once: 1_500 })
})
