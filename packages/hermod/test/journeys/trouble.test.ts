// What can go wrong on the way: an engine that is away, documents it does not take, an operator who
// pauses and cancels, rows that change without events, and schedules.

import { afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import type { SourceRows } from '../../src/journeys/source.ts'
import type { SearchEngine } from '../../src/sinks/search/engine.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import { delivered, rejected, retry, split, unavailable } from '../../src/sinks/sink.ts'
import type { DriftEvent } from '../../src/telemetry.ts'
import { BY, definition, type Profiles, type ProfilesOptions, prepare, profiles } from './profiles.ts'

const db = useDatabase()
let made: Profiles | undefined

beforeAll(() => prepare(db, 300))
afterEach(() => made?.outbox.close())

async function open(options: ProfilesOptions = {}): Promise<Profiles> {
  made = profiles(db, options)
  await made.index.ensure()
  await made.outbox.start({ pollMs: 50, upkeep: false })
  return made
}

/** What the load of a generation is answered: an outcome, or nothing to let it through. */
function answering(answer: (ids: readonly string[]) => ReturnType<SearchEngine['upsert']> | undefined): SearchEngine {
  const engine = postgresSearch({ pool: db.pool })
  const upsert = engine.upsert.bind(engine)
  engine.upsert = ((index, documents, options) => {
    const given = options?.generation && answer(documents.map(({ id }) => id))
    return given || upsert(index, documents, options)
  }) as typeof engine.upsert
  return engine
}

it('an engine in trouble is waited for, with the reason; a batch too large is halved; bad rows are listed', async () => {
  let calls = 0
  const engine = answering((ids) => {
    calls++
    if (calls === 1) return all(ids, unavailable({ message: 'the disk is full' }))
    if (calls === 2) return all(ids, split())
    if (calls === 3) return all(ids, retry({ message: 'not now' }))
    if (!ids.includes('17')) return undefined
    return ids.length > 1 ? all(ids, split()) : all(ids, rejected({ code: 'BAD', message: 'age must be a number' }))
  })
  const stage = await open({ engine })
  const seen = new Set<unknown>()
  const { id } = await stage.outbox.rebuild('profiles', {}, BY)
  const journey = await stage.outbox.journeys.wait(id, {
    onProgress: ({ progress }) => seen.add(progress.waiting),
  })
  expect(seen).toContain('postgres is unavailable: the disk is full')
  expect(journey).toMatchObject({
    state: 'succeeded',
    progress: { done: 300, total: 300 },
    result: {
      rejected: 1,
      rejections: [{ id: '17', code: 'BAD', message: 'age must be a number' }],
    },
  })
  expect(await stage.engine.count('profiles')).toBe(299)
})

function all(ids: readonly string[], outcome: ReturnType<typeof retry>) {
  return Promise.resolve(ids.map(() => outcome)) as ReturnType<SearchEngine['upsert']>
}

it('pause stops between pages and resume goes on; cancel drops what was in the making; two wait in line', async () => {
  let holding = true
  const held: (() => void)[] = []
  const engine = answering((ids) => {
    if (!holding) return undefined
    return new Promise((resolve) => held.push(() => resolve(ids.map(() => delivered()))))
  })
  const stage = await open({ engine })
  const { journeys } = stage.outbox
  const first = await stage.outbox.rebuild('profiles', {}, BY)
  const second = await stage.outbox.rebuild('profiles', {}, BY)
  await eventually(async () => (await journeys.show(first.id))?.phase === 'load')
  expect(await journeys.show(second.id)).toMatchObject({ state: 'queued' })
  await journeys.pause(first.id, BY)
  holding = false
  for (const release of held) release()
  await eventually(async () => (await journeys.show(first.id))?.state === 'paused')
  expect((await stage.engine.generations('profiles')).at(-1)?.state).toBe('building')
  await journeys.cancel(first.id, BY)
  expect(await journeys.wait(first.id)).toMatchObject({ state: 'cancelled' })
  expect(await journeys.wait(second.id)).toMatchObject({ state: 'succeeded' })
  const states = (await stage.engine.generations('profiles')).map(({ state }) => state)
  expect(states).not.toContain('building')
})

it('rows that change without events are healed; what never fits is not swapped in', async () => {
  let looks = 0
  const stage = await open()
  const { source } = stage.index
  const page = source.page.bind(source)
  source.page = async (pool, request) => {
    if (looks++ === 1)
      await db.query(
        `alter table profile disable trigger user; update profile set name = 'Unheard' where id = 3; alter table profile enable trigger user`,
      )
    return page(pool, request)
  }
  const { id } = await stage.outbox.rebuild('profiles', {}, BY)
  expect(await stage.outbox.journeys.wait(id)).toMatchObject({ state: 'succeeded', error: null })
  expect((await stage.engine.get('profiles', '3'))?.document.name).toBe('Unheard')
  const live = (await stage.engine.generations('profiles')).find(({ state }) => state === 'live')?.id
  const find = source.find.bind(source)
  const unsteady = <T extends SourceRows>(found: T): T => ({
    ...found,
    documents: found.documents.map(({ id: key }) => ({ id: key, json: `{"n":${Math.random()}}` })),
  })
  source.page = async (pool, request) => unsteady(await page(pool, request))
  source.find = async (pool, ids) => unsteady(await find(pool, ids))
  const { id: never } = await stage.outbox.rebuild('profiles', {}, BY)
  const failed = await stage.outbox.journeys.wait(never)
  expect(failed).toMatchObject({
    state: 'failed',
    error: expect.stringContaining('was not swapped in'),
  })
  const after = await stage.engine.generations('profiles')
  expect(after.find(({ state }) => state === 'live')?.id).toBe(live)
  expect(after.map(({ state }) => state)).not.toContain('building')
})

it('what is scheduled is started once by all workers, and drift is told', async () => {
  const drift: DriftEvent[] = []
  const schedule = { verify: { everyMs: 3_600_000, sample: 20 }, rebuild: { everyMs: 86_400_000 } }
  // Whoever of the two takes it tells its own listener.
  const listener = { drift: (event: DriftEvent) => drift.push(event) }
  const one = await open({ listener, index: { schedule } })
  const two = profiles(db, { listener, index: { schedule, definition } })
  onTestFinished(() => two.outbox.close())
  await two.outbox.start({ pollMs: 50, upkeep: false })
  await eventually(() => drift.length > 0)
  const verifies = await one.outbox.journeys.list({ kind: 'verify' })
  expect(verifies).toMatchObject([{ requestedBy: 'schedule', plan: { sample: 20 } }])
  expect(drift[0]).toMatchObject({ index: 'profiles', missing: 0, stale: 0 })
  const rebuilds = await one.outbox.journeys.list({ kind: 'rebuild' })
  expect(rebuilds.filter(({ requestedBy }) => requestedBy === 'schedule')).toEqual([])
})
