// Lanes, holds, coalescing, retries, ledgers and crashes against a model: whatever is changed, fails,
// dies and comes back, in whatever policy, nothing is lost, nothing overtakes, nothing dies unduly.
// Repeat a failure: HERMOD_MODEL_SEED=… npx vitest run packages/hermod/test/model/lanes.test.ts

import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { violations } from '../../../../test/support/invariants.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import type { OutboxOptions } from '../../src/options.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { WatchedPool } from '../interleavings/cases/stage.ts'
import { type Answer, Destination, type Policy, type Row } from './destination.ts'

const db = useDatabase()
const runs = Number(process.env.HERMOD_MODEL_RUNS ?? 60)
const seed = Number(process.env.HERMOD_MODEL_SEED ?? Date.now() % 1_000_000_000)
const limitMs = runs > 60 ? 3_600_000 : 30_000
const work = { upkeep: false, listen: false, concurrency: 2, deadlineMs: 20_000 } as const

let clock: FakeClock
beforeAll(async () => {
  clock = await fakeClock(db.pool)
})

class World {
  readonly name: string
  readonly destination: Destination
  readonly outbox: Outbox
  readonly #pool = new WatchedPool(db.pool)
  #dead = false

  constructor(name: string, policy: Policy) {
    this.name = name
    this.destination = new Destination(policy)
    const { order, coalesce, onDead, attemptsMax, count, lanes } = policy
    const options = { pool: this.#pool, random: () => 0 } as unknown as OutboxOptions
    this.outbox = createOutbox(options).subscribe(name, {
      revision: 1,
      types: ['*'],
      sink: this.destination,
      order,
      coalesce,
      onDead,
      lanes,
      retry: { attemptsMax, baseMs: 1_000 },
      batch: { count },
    })
    this.#pool.before = (text) => this.#die(text, 'before')
    this.#pool.after = (text) => this.#die(text, 'after')
  }

  /** From the crash on no statement of this process reaches the database. */
  #die(text: string, when: 'before' | 'after'): void {
    const { crash } = this.destination
    if (text.includes('outbox.settle(') && crash === when) this.#dead = true
    if (text.includes('outbox.park(') && crash === 'before record') this.#dead = true
    if (this.#dead && (when === 'before' || text.includes('outbox.settle(')))
      throw Object.assign(new Error('Connection terminated: the process is dead'), {
        code: '08006',
      })
  }

  async serve(): Promise<void> {
    await this.outbox.runOnce(work).catch((error) => {
      if (!this.#dead) throw error
    })
    this.destination.crash = undefined
    if (!this.#dead) return
    this.#dead = false
    this.destination.crashes++
    await db.query(`delete from outbox.worker`)
    await clock.advance(60_000)
  }

  async emit(events: readonly (readonly [id: string, plan: readonly Answer[]])[]): Promise<void> {
    const list = events.map(([id, plan]) => ({
      type: 'doc.changed',
      aggregate: ['doc', `${this.name}/${id}`] as const,
      payload: { v: this.destination.change(`${this.name}/${id}`, plan) },
    }))
    await db.query(
      `select outbox.emit_many(array_fill('doc.changed'::text, array[$1::int]), array_fill('doc'::text, array[$1::int]), $2::text[], $3::text[])`,
      [list.length, list.map(({ aggregate }) => aggregate[1]), list.map(({ payload }) => JSON.stringify(payload))],
    )
  }

  rows(): Promise<Row[]> {
    return db.query<Row>(
      `select d.aggregate_id as id, (e.payload ->> 'v')::int as v, d.state from outbox.delivery d
         join outbox.event e on e.id = d.event_id where d.subscription = $1 and d.state <> 'delivered' order by d.pos`,
      [this.name],
    )
  }

  /** After every command. */
  async check(): Promise<void> {
    const rows = await this.rows()
    const { destination } = this
    const { order, coalesce, ledger } = destination.policy
    expect(destination.disorder((id, v) => destination.mayDie(id, v) || (destination.crashes > 0 && ledger))).toEqual(
      [],
    )
    const dead = rows.filter(({ state, id, v }) => state === 'dead' && !destination.mayDie(id, v))
    expect(dead, 'died unduly').toEqual([])
    const waiting = rows.filter(({ state }) => state === 'retrying').map(({ id }) => id)
    if ((order === 'aggregate' || coalesce === 'latest') && !ledger)
      expect(new Set(waiting).size, 'rows of one aggregate').toBe(waiting.length)
    if (destination.crashes === 0) expect(rows.filter(({ state }) => state === 'unknown')).toEqual([])
  }

  /** Plans run out: it ends, and all is accounted for. */
  async end(): Promise<void> {
    let rows: Row[] = []
    for (let round = 0; round < 40; round++) {
      await clock.advance(60_000)
      await this.serve()
      rows = await this.rows()
      if ((await this.#open()) === 0) break
    }
    expect(
      rows.filter(({ state }) => !['dead', 'unknown'].includes(state)),
      'still open',
    ).toEqual([])
    expect(this.destination.lost(rows), 'lost').toEqual([])
    this.#newestLast()
    await this.check()
    this.#exactlyDead(rows)
    const { 'I8: deliveries that are still open': _, ...wrong } = await violations(db, 'I1', 'I5')
    expect(wrong).toEqual({})
    await db.query('delete from outbox.subscription where name = $1', [this.name])
  }

  /** Without crashes and outages every refusal is remembered: each ends as a dead letter, unless a newer state closed it. */
  #exactlyDead(rows: readonly Row[]): void {
    const { versions, policy, crashes } = this.destination
    if (crashes > 0 || policy.coalesce === 'latest') return
    const should = [...versions].flatMap(([id, last]) =>
      Array.from({ length: last }, (_, n) => n + 1)
        .filter((v) => this.destination.mayDie(id, v))
        .map((v) => `${id}@${v}`),
    )
    const { uncounted } = this.destination
    const counted = (names: string[]) => names.filter((name) => !uncounted.has(name)).sort()
    const dead = rows.map(({ id, v }) => `${id}@${v}`)
    expect(counted(dead), 'dead letters').toEqual(counted(should))
  }

  async #open(): Promise<number> {
    const [row] = await db.query<{ n: number }>(
      `select ((select count(*) from outbox.subscription s join outbox.lane l on l.subscription = s.name
                 cross join lateral outbox.cursor_of(s.name, l.lane) c
                  join outbox.log g on g.pos > c.pos and (s.lanes = 1 or g.lane = l.lane) where s.name = $1)
         + (select count(*) from outbox.delivery d where d.subscription = $1 and d.state in ('pending', 'retrying', 'sending')))::int as n`,
      [this.name],
    )
    return row?.n ?? 0
  }

  #newestLast(): void {
    if (this.destination.policy.coalesce !== 'latest') return
    for (const [id, list] of this.destination.accepted) {
      const newest = Math.max(...list)
      // Accepted before a crash, refused when it was sent again: a dead letter says so.
      if (this.destination.mayDie(id, newest)) continue
      expect(list.at(-1), `the last state of ${id}: ${list}`).toBe(newest)
    }
  }
}

type Model = { changes: number }
type Step = fc.AsyncCommand<Model, World>

class Change implements Step {
  readonly #events: readonly (readonly [string, readonly Answer[]])[]
  constructor(events: readonly (readonly [string, readonly Answer[]])[]) {
    this.#events = events
  }
  check = () => true
  async run(model: Model, world: World): Promise<void> {
    model.changes += this.#events.length
    await world.emit(this.#events)
  }
  toString = () => `change(${this.#events.map(([id, plan]) => `${id}: ${plan.join('+') || 'ok'}`).join(', ')})`
}

class Serve implements Step {
  check = (model: Readonly<Model>) => model.changes > 0
  async run(_: Model, world: World): Promise<void> {
    await world.serve()
    await world.check()
  }
  toString = () => 'serve'
}

class Wait implements Step {
  readonly #ms: number
  constructor(ms: number) {
    this.#ms = ms
  }
  check = () => true
  async run(): Promise<void> {
    await clock.advance(this.#ms)
  }
  toString = () => `wait(${this.#ms})`
}

const answers = fc.constantFrom<Answer>(
  'retry',
  'retry',
  'retry',
  'rejected',
  'unavailable',
  'crash-before',
  'crash-after',
)
const plan = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  { weight: 3, arbitrary: fc.array(answers, { minLength: 1, maxLength: 4 }) },
)
const event = fc.tuple(fc.constantFrom('a', 'b', 'c'), plan)
const steps = [
  fc.array(event, { minLength: 1, maxLength: 6 }).map((events) => new Change(events)),
  fc.constant(new Serve()),
  fc.constant(new Serve()),
  fc.constantFrom(500, 1_100, 8_000).map((ms) => new Wait(ms)),
]
const policies = fc
  .record({
    order: fc.constantFrom<Policy['order'][]>('aggregate', 'aggregate', 'none'),
    coalesce: fc.constantFrom<Policy['coalesce'][]>('none', 'latest'),
    onDead: fc.constantFrom<Policy['onDead'][]>('release', 'hold'),
    attemptsMax: fc.integer({ min: 1, max: 3 }),
    count: fc.integer({ min: 1, max: 5 }),
    lanes: fc.constantFrom<Policy['lanes'][]>(1, 'all'),
    keepsOrder: fc.boolean(),
    ledger: fc.boolean(),
    asynchronous: fc.constantFrom(false, false, false, true),
  })
  .map((policy): Policy => {
    const coalesce = policy.ledger ? 'none' : policy.coalesce
    const asynchronous = policy.asynchronous && !policy.ledger
    const keepsOrder = policy.keepsOrder && policy.order === 'aggregate' && !policy.ledger
    const onDead = policy.order === 'none' && coalesce === 'none' ? 'release' : policy.onDead
    return { ...policy, coalesce, keepsOrder, onDead, asynchronous }
  })

let count = 0

it(`nothing is lost, nothing overtakes, nothing dies unduly (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(policies, fc.commands(steps, { maxCommands: 14, size: 'max' }), async (policy, commands) => {
      await db.query('select * from outbox.sequence()')
      const world = new World(`m${++count}`, policy)
      await world.serve()
      await fc.asyncModelRun(() => ({ model: { changes: 0 }, real: world }), commands)
      await world.end()
    }),
    { numRuns: runs, seed, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false },
  )
  console.log(`${count} runs, seed ${seed}`)
})
