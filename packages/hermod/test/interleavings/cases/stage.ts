// What scripts about lanes and failing share: documents that change version by version, a sink that
// remembers them as `a1 b1 a2`, a database clock to move, and a pool whose statements can be held up.

import type { Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { OutboxOptions, SubscriptionOptions, WorkerOptions } from '../../../src/options.ts'
import type { Listener } from '../../../src/telemetry.ts'
import type { FakeClock, MemorySink } from '../../../src/testing/index.ts'

type Db = Env['db']
type Outcomes = typeof import('../../../src/sinks/outcome.ts')

/** `doc-3` at version 2 is written `doc-3@2`. */
export const label = ({ aggregateId, payload }: Pick<OutboxEvent, 'aggregateId' | 'payload'>) =>
  `${aggregateId}@${(payload as { v?: number } | null)?.v ?? '-'}`

export const labels = (sink: Pick<MemorySink, 'accepted'>): string[] => sink.accepted.map(label)

/** Versions a sink accepted of one document, in order. */
export const versionsOf = (sink: Pick<MemorySink, 'accepted'>, id: string): number[] =>
  sink.accepted.filter(({ aggregateId }) => aggregateId === id).map(({ payload }) => (payload as { v: number }).v)

export type Serve = {
  readonly subscription?: Partial<SubscriptionOptions>
  readonly name?: string
  readonly pool?: unknown
  readonly listener?: Listener
}

/** No upkeep, no LISTEN, no retries of chance: what happens is what the script does. */
export const quiet: WorkerOptions = { upkeep: false, listen: false, pollMs: 10, busyPollMs: 5 }

export class Stage {
  readonly env: Env
  readonly clock: FakeClock
  /** `retry()`, `unavailable()`, …: what sinks answer. */
  readonly say: Outcomes
  readonly #versions = new Map<string, number>()

  constructor(env: Env, clock: FakeClock, say: Outcomes) {
    this.env = env
    this.clock = clock
    this.say = say
  }

  get db(): Db {
    return this.env.db
  }

  /** One transaction that changes these documents, numbered at once. */
  async change(...ids: string[]): Promise<void> {
    await this.emit(ids)
    await this.step()
  }

  async emit(ids: readonly string[], type = 'doc.changed'): Promise<void> {
    const payloads = ids.map((id) => {
      const v = (this.#versions.get(id) ?? 0) + 1
      this.#versions.set(id, v)
      return JSON.stringify({ v })
    })
    await this.db.query(
      `select outbox.emit_many(array_fill($1::text, array[$2::int]), array_fill('doc'::text, array[$2::int]), $3::text[], $4::text[])`,
      [type, ids.length, ids, payloads],
    )
  }

  /** Many events at once, straight into the table; the expressions see the counter `n`. */
  async bulk(count: number, type: string, id: string): Promise<void> {
    await this.db.query(
      `insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload)
       select 10, ${type}, 'doc', ${id}, '{"v": 0}' from generate_series(1, $1::int) n`,
      [count],
    )
    await this.step()
  }

  async step(): Promise<void> {
    await eventually(async () => {
      const [row] = await this.db.query<{ more: boolean }>('select more from outbox.sequence()')
      return row !== undefined && !row.more
    })
  }

  /** Documents whose lane is `lane`. */
  async inLane(lane: number, count: number): Promise<string[]> {
    const rows = await this.db.query<{ id: string }>(
      `select 'd' || n as id from generate_series(1, 100000) n, outbox.setting t
        where outbox.lane_of(outbox.hash('doc', 'd' || n), t.lanes) = $1 limit $2`,
      [lane, count],
    )
    return rows.map(({ id }) => id)
  }

  outbox(sink: SubscriptionOptions['sink'], { subscription = {}, name = 'all', pool, listener = {} }: Serve = {}) {
    const given = { pool: pool ?? this.db.pool, random: () => 0, listener }
    return this.env.engine.createOutbox(given as unknown as OutboxOptions).subscribe(name, {
      revision: 1,
      types: ['*'],
      from: 'beginning',
      sink,
      ...subscription,
    } as SubscriptionOptions)
  }

  /** `a@2 retrying 1`: every row that needs attention, in order of position. */
  async rows(name = 'all'): Promise<string[]> {
    const found = await this.db.query<{ says: string }>(
      `select format('%s@%s %s %s', d.aggregate_id, e.payload ->> 'v', d.state, d.attempts) as says
         from outbox.delivery d join outbox.event e on e.id = d.event_id
        where d.subscription = $1 order by d.pos`,
      [name],
    )
    return found.map(({ says }) => says)
  }

  /** Positions past the cursors. */
  async open(name = 'all'): Promise<number> {
    const [row] = await this.db.query<{ n: number }>(
      `select count(*)::int as n from outbox.lane l cross join lateral outbox.cursor_of($1, l.lane) c
         join outbox.subscription s on s.name = l.subscription
         join outbox.log g on g.pos > c.pos and (s.lanes = 1 or g.lane = l.lane) where l.subscription = $1`,
      [name],
    )
    return row?.n ?? 0
  }

  async held(owner?: string): Promise<number> {
    const [row] = await this.db.query<{ n: number }>(
      `select count(*)::int as n from outbox.lane
        where owner is not null and lease_until > outbox.clock() and ($1::text is null or owner = $1)`,
      [owner ?? null],
    )
    return row?.n ?? 0
  }
}

export async function stage(env: Env): Promise<Stage> {
  const clock = await env.engine.testing.fakeClock(env.db.pool)
  return new Stage(env, clock, await env.engine.load<Outcomes>('sinks/outcome.ts'))
}

type Statement = { readonly text: string; readonly values?: unknown[] }
type Hook = (text: string) => Promise<void> | void

/** A pool whose statements can be held up before they are sent, or before their answer is heard. */
export class WatchedPool {
  readonly #pool: Db['pool']
  readonly #clients = new WeakMap<object, object>()
  readonly ended: string[] = []
  before: Hook = () => {}
  after: Hook = () => {}

  constructor(pool: Db['pool']) {
    this.#pool = pool
  }

  get options() {
    return { max: 100 }
  }

  on(name: 'error', hear: (error: Error) => void): void {
    this.#pool.on(name, hear)
  }

  /** Statements of a client are held up too; plain texts (BEGIN, LISTEN) are not. */
  async connect() {
    const client = await this.#pool.connect()
    const known = this.#clients.get(client)
    if (known !== undefined) return known
    const query = (config: Statement | string) =>
      typeof config === 'string' ? client.query(config) : this.#ask(config, (asked) => client.query(asked as never))
    const watched = {
      query,
      release: (error?: Error | boolean) => client.release(error),
      on: client.on.bind(client),
      removeListener: client.removeListener.bind(client),
    }
    this.#clients.set(client, watched)
    return watched
  }

  query(config: Statement): Promise<unknown> {
    return this.#ask(config, (asked) => this.#pool.query(asked as never))
  }

  async #ask(config: Statement, send: (config: Statement) => Promise<unknown>): Promise<unknown> {
    const text = config.text
    await this.before(text)
    const answer = await send(config)
    await this.after(text)
    this.ended.push(text)
    return answer
  }

  /** How many statements that contain `text` were answered. */
  count(text: string): number {
    return this.ended.filter((ended) => ended.includes(text)).length
  }
}

export type Gate = { readonly opened: Promise<void>; readonly open: () => void }

export function gate(): Gate {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
