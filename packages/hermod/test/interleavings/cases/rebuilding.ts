// Rebuilds against everything that can happen beside them: writes between reading a page and loading
// it, a runner that is taken over in each phase and goes on all the same, events that are numbered
// after the noted position, and a call that is under way while the generations are swapped.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import type { Outbox } from '../../../src/index.ts'
import type { IndexSource } from '../../../src/journeys/source.ts'
import type { SearchEngine } from '../../../src/sinks/search/engine.ts'

const BY = { actor: 'script' }
const fields = { name: { kind: 'text', weight: 4 }, n: { kind: 'number' } } as const

type Hook = () => Promise<void>

/** Called when the journey comes to a point, by name; a hook that waits holds it there. */
type Hooks = Partial<Record<'read' | 'load' | 'create' | 'swap' | 'swapped', Hook>>

interface Stage {
  readonly outbox: Outbox
  readonly engine: SearchEngine
  rename(id: number, name: string): Promise<void>
}

async function prepare({ db }: Env, rows: number): Promise<void> {
  await db.query('create table item (id bigint primary key, name text not null, n int not null)')
  await db.query(`insert into item select n, 'Item ' || n, n from generate_series(1, $1::int) n`, [rows])
}

/** Workers and runners of one "machine"; each has hooks of its own. */
async function open(env: Env, hooks: Hooks = {}): Promise<Stage> {
  const { db, engine: hermod } = env
  const { postgresSearch } =
    await hermod.load<typeof import('../../../src/sinks/search/postgres.ts')>('sinks/search/postgres.ts')
  const engine = hooked(postgresSearch({ pool: db.pool }), hooks)
  const outbox = hermod.createOutbox({ pool: db.pool }) as Outbox
  const index = outbox.index('items', {
    engine,
    definition: { fields },
    subscription: 'search',
    keepMs: 3_600_000,
    source: hookedSource(hermod.tableSource({ table: 'item' }), hooks),
  })
  outbox.subscribe('search', {
    revision: 1,
    types: ['item.*'],
    coalesce: 'latest',
    from: 'beginning',
    sink: index.sink(),
    load: index.load,
    loads: 'references',
  })
  await index.ensure()
  db.closeAtEnd(() => outbox.close())
  const rename = async (id: number, name: string) => {
    await db.query(
      `with w as (update item set name = $2 where id = $1) select outbox.emit('item.renamed', 'item', $1::text, null)`,
      [id, name],
    )
  }
  return { outbox, engine, rename }
}

/** A worker that delivers and knows of no index: it takes no journey. */
async function deliver({ db, engine: hermod }: Env): Promise<void> {
  const [{ postgresSearch }, { searchSink }] = await Promise.all([
    hermod.load<typeof import('../../../src/sinks/search/postgres.ts')>('sinks/search/postgres.ts'),
    hermod.load<typeof import('../../../src/sinks/search/sink.ts')>('sinks/search/sink.ts'),
  ])
  const outbox = hermod.createOutbox({ pool: db.pool })
  outbox.subscribe('search', {
    revision: 1,
    types: ['item.*'],
    coalesce: 'latest',
    from: 'beginning',
    loads: 'references',
    sink: searchSink(postgresSearch({ pool: db.pool }), { index: 'items' }),
    load: async (events) => {
      const ids = events.map(({ aggregateId }) => aggregateId)
      const rows = await db.query('select * from item where id = any ($1::bigint[])', [ids])
      return new Map(rows.map((row) => [String(row.id), { ...row, id: Number(row.id) }]))
    },
  })
  await outbox.start(quiet)
  db.closeAtEnd(() => outbox.close())
}

function hooked(engine: SearchEngine, hooks: Hooks): SearchEngine {
  const wrapped = Object.create(engine) as SearchEngine
  const before = <K extends keyof SearchEngine>(name: K, hook: (given: unknown[]) => Hook | undefined) => {
    const real = (engine[name] as (...args: unknown[]) => unknown).bind(engine)
    Object.defineProperty(wrapped, name, {
      value: async (...args: unknown[]) => {
        await hook(args)?.()
        // Whatever it was told meanwhile: what is on its way arrives.
        const result = await real(...args.map(unstoppable))
        if (name === 'swapGeneration') await hooks.swapped?.()
        return result
      },
    })
  }
  for (const name of [
    'ensureIndex',
    'delete',
    'get',
    'search',
    'count',
    'generations',
    'dropGeneration',
    'rollBackGeneration',
    'close',
    'probe',
  ] as const) {
    before(name, () => undefined)
  }
  before('upsert', ([, , options]) =>
    (options as { generation?: string } | undefined)?.generation === undefined ? undefined : hooks.load,
  )
  before('createGeneration', () => hooks.create)
  before('swapGeneration', () => hooks.swap)
  before('scan', () => undefined)
  return wrapped
}

function unstoppable(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || !('signal' in given)) return given
  const { signal: _, ...rest } = given
  return rest
}

function hookedSource(source: IndexSource, hooks: Hooks): IndexSource {
  return {
    name: source.name,
    page: async (db, request) => {
      await hooks.read?.()
      return source.page(db, request)
    },
    find: (db, ids) => source.find(db, ids),
    count: (db) => source.count(db),
    sample: (db, count) => source.sample(db, count),
  }
}

/** Waits for whoever opens it; says when somebody came. */
function gate() {
  let arrive: () => void = () => {}
  let open: () => void = () => {}
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const hook = async () => {
    arrive()
    await opened
  }
  return { hook, arrived, open: () => open() }
}

const quiet = { upkeep: false, listen: false, pollMs: 20, busyPollMs: 5 } as const

async function succeeded({ outbox }: Stage, id: bigint): Promise<Record<string, unknown>> {
  const { state, error, result } = await outbox.journeys.wait(id)
  expect({ state, error }).toEqual({ state: 'succeeded', error: null })
  return result as Record<string, unknown>
}

/** The live generation holds what the table says, and so does one that was filled before it. */
async function allNewest({ db }: Env, { outbox, engine }: Stage, former: readonly string[] = []): Promise<void> {
  const { id } = await outbox.verify('items', {}, BY)
  const { result, error } = await outbox.journeys.run(id)
  expect({ ...result, error }).toMatchObject({ missing: 0, orphaned: 0, stale: 0, error: null })
  const rows = await db.query<{ id: string; name: string }>('select id::text, name from item')
  const filled = (await engine.generations('items')).filter(({ id, state }) => state === 'live' || former.includes(id))
  for (const { id: generation } of filled) {
    expect(await engine.count('items', { generation }), `generation ${generation}`).toBe(rows.length)
    for (const { id, name } of rows) {
      const stored = await engine.get('items', id, { generation })
      expect(stored?.document.name, `${id} in generation ${generation}`).toBe(name)
    }
  }
}

export const againstLive = defineCase('rebuild-against-live', async (env) => {
  await prepare(env, 30)
  const page = gate()
  const stage = await open(env, { load: page.hook })
  await stage.outbox.start(quiet)
  const { id: fill } = await stage.outbox.backfill('items', BY)
  await succeeded(stage, fill)
  const { id } = await stage.outbox.rebuild('items', {}, BY)
  // The page is read; before it is loaded, rows of it change, go and come, and all that is delivered.
  await page.arrived
  await stage.rename(3, 'Newer')
  await env.db.query(`with w as (delete from item where id = 4) select outbox.emit('item.deleted', 'item', '4', null)`)
  await env.db.query(
    `with w as (insert into item values (0, 'Before all', 0)) select outbox.emit('item.created', 'item', '0', null)`,
  )
  await env.engine.testing.drain(stage.outbox)
  page.open()
  const { former } = await succeeded(stage, id)
  await allNewest(env, stage, [former as string])
})

/** Where a runner stands still, loses its journey, and goes on later. */
const points = ['create', 'load', 'swap', 'swapped'] as const

export const takenOver = points.map((point) =>
  defineCase(`rebuild-against-live: taken over at ${point}`, async (env) => {
    await prepare(env, 30)
    const frozen = gate()
    const zombie = await open(env, { [point]: frozen.hook })
    const heir = await open(env)
    await deliver(env)
    const { id } = await heir.outbox.rebuild('items', {}, BY)
    const lost = zombie.outbox.journeys.run(id)
    await frozen.arrived
    await heir.rename(5, 'While nobody had it')
    await env.db.query(`update outbox.journey set owner = 'frozen', owner_until = outbox.clock() where id = $1`, [id])
    const { state, error } = await heir.outbox.journeys.run(id)
    expect(error ?? state).toBe('succeeded')
    const live = async () => (await heir.engine.generations('items')).find(({ state }) => state === 'live')?.id
    const made = await live()
    await heir.rename(6, 'After the swap')
    await env.engine.testing.drain(heir.outbox)
    frozen.open()
    await lost
    expect(await live(), 'whoever came back late changed nothing').toBe(made)
    await allNewest(env, heir)
  }),
)

export const position = defineCase('rebuild-position', async (env) => {
  await prepare(env, 5)
  const [before, after] = [gate(), gate()]
  let pages = 0
  const stage = await open(env, {
    read: () => (pages++ === 0 ? before.hook() : Promise.resolve()),
    load: after.hook,
  })
  const { id } = await stage.outbox.rebuild('items', {}, BY)
  const running = stage.outbox.journeys.run(id)
  await before.arrived
  // Committed before the page is read, and nobody numbers it: no worker runs.
  await stage.rename(2, 'Committed, not numbered')
  before.open()
  await after.arrived
  const [{ pos }] = (await env.db.query<{ pos: string }>(
    'select coalesce(max(pos), 0)::text as pos from outbox.log',
  )) as [{ pos: string }]
  expect(pos, 'not numbered when the page was read').toBe('0')
  await stage.rename(3, 'Committed after the page')
  after.open()
  await stage.outbox.start(quiet)
  await running
  const { generation } = await succeeded(stage, id)
  for (const [key, name] of [
    ['2', 'Committed, not numbered'],
    ['3', 'Committed after the page'],
  ]) {
    const stored = await stage.engine.get('items', key as string, {
      generation: generation as string,
    })
    expect(stored?.document.name).toBe(name)
    expect(stored?.version, 'applied again, by its own position').toBeGreaterThan(0n)
  }
  await allNewest(env, stage)
})

export const callInFlight = defineCase('swap-with-call-in-flight', async (env) => {
  await prepare(env, 20)
  const swap = gate()
  const stage = await open(env, { swap: swap.hook })
  await stage.outbox.start(quiet)
  const { id: fill } = await stage.outbox.backfill('items', BY)
  await succeeded(stage, fill)
  const [former] = await stage.engine.generations('items')
  const { id } = await stage.outbox.rebuild('items', {}, BY)
  await swap.arrived
  // A call is in the middle of its write to the former generation when the names change.
  const holder = await env.db.pool.connect()
  await holder.query('begin')
  await holder.query(`select from search."items_g${former?.id}" where id = '7' for update`)
  await stage.rename(7, 'Caught in the middle')
  await eventually(async () => {
    const rows = await env.db.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    return rows.length > 0
  })
  swap.open()
  await eventually(async () => (await stage.engine.generations('items')).at(-1)?.state === 'live')
  await stage.rename(7, 'The last word')
  await holder.query('commit')
  holder.release()
  const { generation } = await succeeded(stage, id)
  await env.engine.testing.drain(stage.outbox)
  // An old batch that comes late changes nothing in the generation that is live now.
  const late = await stage.engine.upsert('items', [{ id: '7', version: 1n, json: '{"name":"Old"}' }])
  expect(late.map(({ outcome }) => outcome)).toEqual(['superseded'])
  expect((await stage.engine.generations('items')).find(({ state }) => state === 'live')?.id).toBe(generation)
  await allNewest(env, stage)
})

export const cases = [againstLive, ...takenOver, position, callInFlight]
