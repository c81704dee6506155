// Rebuild, verify and backfill of an index on PostgreSQL, with a worker that carries them out.

import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import type { DriftEvent, JourneyEvent } from '../../src/telemetry.ts'
import { drain } from '../../src/testing/index.ts'
import { BY, definition, type Profiles, type ProfilesOptions, prepare, profiles } from './profiles.ts'

const db = useDatabase()
const rows = 700
let made: Profiles | undefined

beforeAll(() => prepare(db, rows))

async function open(options: ProfilesOptions = {}): Promise<Profiles> {
  made = profiles(db, options)
  await made.index.ensure()
  await made.outbox.start({ pollMs: 50, upkeep: false })
  return made
}

afterEach(async () => {
  await made?.outbox.close()
  await db.query(
    `update outbox.journey set state = 'cancelled', ended_at = outbox.clock(), owner = null, owner_until = null where ended_at is null`,
  )
})

async function ended({ outbox }: Profiles, id: bigint) {
  const journey = await outbox.journeys.wait(id)
  if (journey.state === 'failed') throw new Error(journey.error ?? 'failed')
  return journey
}

describe('backfill', () => {
  it('fills an index that was never filled, and verify then finds nothing', async () => {
    const stage = await open()
    const { id } = await stage.outbox.backfill('profiles', BY)
    const { result } = await ended(stage, id)
    expect(result).toMatchObject({ documents: rows, rejected: 0 })
    expect(await stage.engine.count('profiles')).toBe(rows)
    const { id: second } = await stage.outbox.verify('profiles', {}, BY)
    expect((await ended(stage, second)).result).toMatchObject({
      source: rows,
      indexed: rows,
      missing: 0,
      orphaned: 0,
      stale: 0,
      moving: 0,
    })
  })
})

describe('rebuild', () => {
  it('swaps in a new generation while rows change, keeps the former one, and drops it', async () => {
    const events: JourneyEvent[] = []
    const stage = await open({ listener: { journey: (event) => events.push(event) } })
    const before = await stage.engine.generations('profiles')
    const { id } = await stage.outbox.rebuild('profiles', { keepMs: 0 }, BY)
    for (let n = 1; n <= 40; n++) {
      await db.query(`update profile set bio = 'edited ' || $2 where id = $1`, [n * 17, n])
    }
    await db.query('delete from profile where id = 5')
    const journey = await ended(stage, id)
    expect(journey.state).toBe('succeeded')
    await drain(stage.outbox)
    expect(await stage.engine.count('profiles')).toBe(rows - 1)
    await eventually(async () => (await stage.engine.generations('profiles')).length === 1)
    const [live] = await stage.engine.generations('profiles')
    expect(live?.id).not.toBe(before.at(-1)?.id)
    const { id: check } = await stage.outbox.verify('profiles', {}, BY)
    expect((await ended(stage, check)).result).toMatchObject({ missing: 0, orphaned: 0, stale: 0 })
    const phases = [...new Set(events.map(({ phase }) => phase))]
    for (const phase of ['create', 'load', 'catch-up', 'verify', 'swap', 'settle', 'keep']) {
      expect(phases).toContain(phase)
    }
  })

  it('sends again what happened meanwhile, where the engine needs it, and holds the log until then', async () => {
    const made = postgresSearch({ pool: db.pool })
    const capabilities = { ...made.capabilities, externalVersion: false }
    const engine = Object.assign(made, { capabilities, generationsMs: 50 })
    const stage = await open({ engine })
    const { id } = await stage.outbox.rebuild('profiles', { keepMs: 0 }, BY)
    await eventually(async () => (await stage.outbox.journeys.show(id))?.phase === 'load')
    expect(await db.query('select holder from outbox.keep')).toEqual([{ holder: `rebuild ${id}` }])
    await db.query(`update profile set bio = 'sent twice' where id < 20`)
    await ended(stage, id)
    const replays = await stage.outbox.journeys.list({ kind: 'replay' })
    expect(replays).toMatchObject([
      { state: 'succeeded', subject: 'search', reason: `rebuild ${id}` },
      { state: 'succeeded', subject: 'search', reason: `rebuild ${id}` },
    ])
    expect(await db.query('select holder from outbox.keep')).toEqual([])
    const { id: check } = await stage.outbox.verify('profiles', {}, BY)
    expect((await ended(stage, check)).result).toMatchObject({ missing: 0, orphaned: 0, stale: 0 })
  })

  it('takes over a changed declaration', async () => {
    const changed = { fields: { ...definition.fields, bio: { kind: 'stored' } } } as const
    const stage = await open({ index: { definition: changed } })
    expect((await stage.index.ensure()).state).toBe('rebuild-needed')
    const { id } = await stage.outbox.rebuild('profiles', { keepMs: 60_000 }, BY)
    await ended(stage, id)
    expect((await stage.index.ensure()).state).toBe('unchanged')
    expect((await stage.engine.search('profiles', { query: 'topic' })).total).toBe(0)
    const { id: back } = await stage.outbox.rebuild('profiles', { rollback: true }, BY)
    await ended(stage, back)
    expect((await stage.engine.search('profiles', { query: 'topic' })).total).toBeGreaterThan(0)
  })
})

describe('verify', () => {
  it('tells missing, orphaned and stale apart, and repairs through the log', async () => {
    const drift: DriftEvent[] = []
    const stage = await open({ listener: { drift: (event) => drift.push(event) } })
    await drain(stage.outbox)
    const { id: fill } = await stage.outbox.rebuild('profiles', { keepMs: 0 }, BY)
    await ended(stage, fill)
    const [generation] = (await stage.engine.generations('profiles')).filter(({ state }) => state === 'live')
    const table = `search."profiles_g${generation?.id}"`
    await db.query(`delete from ${table} where id in ('7', '8')`)
    await db.query(`update ${table} set source = '{"id":9,"name":"somebody else"}' where id = '9'`)
    await stage.engine.upsert('profiles', [{ id: 'nobody', version: 1n, json: '{"name":"ghost"}' }])
    const { id } = await stage.outbox.verify('profiles', {}, BY)
    expect((await ended(stage, id)).result).toMatchObject({
      missing: 2,
      orphaned: 1,
      stale: 1,
      repaired: 0,
      examples: { missing: ['7', '8'], orphaned: ['nobody'], stale: ['9'] },
    })
    const { id: repair } = await stage.outbox.verify('profiles', { repair: true }, BY)
    expect((await ended(stage, repair)).result).toMatchObject({
      missing: 0,
      orphaned: 0,
      stale: 0,
      repaired: 4,
    })
    expect(drift.map(({ missing, orphaned, stale }) => missing + orphaned + stale)).toEqual([4, 4, 0])
  })

  it('looks at a sample', async () => {
    const stage = await open()
    const { id } = await stage.outbox.verify('profiles', { sample: 50 }, BY)
    expect((await ended(stage, id)).result).toMatchObject({
      source: 50,
      missing: 0,
      stale: 0,
      sampled: true,
    })
  })

  it('refuses to repair where no row can be read again', async () => {
    const stage = profiles(db, { load: false })
    expect(() => stage.outbox.verify('profiles', { repair: true }, BY)).toThrow(/has no load/)
    await stage.outbox.close()
  })
})
