// What else an operator decides: discard, groups, correct, pause, mode. Each leaves one audit row.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { rejected, retry } from '../../src/sinks/sink.ts'
import { BY, docs, stage } from './stage.ts'

const db = useDatabase()

const audits = () => db.query('select * from outbox.audit order by id')
const accepted = (sink: { accepted: readonly { payload: unknown }[] } | undefined) =>
  sink?.accepted.map(({ payload }) => (payload as { n: number }).n)

describe('discard', () => {
  it('releases what was held behind it', async () => {
    const answer = ({ payload }: { payload: unknown }) => ((payload as { n: number }).n === 0 ? rejected() : undefined)
    const s = await stage(db, { held: { answer, onDead: 'hold' } })
    const ids = await s.emit(...docs('h', 'h', 'h'))
    await s.work('held')
    expect(accepted(s.sinks.held)).toEqual([])
    await s.outbox.discard('held', await s.positionOf(ids[0]), {
      actor: 'ada',
      reason: 'a test entry',
    })
    await s.work('held')
    expect(accepted(s.sinks.held)).toEqual([1, 2])
    expect(await Promise.all(ids.map(async (id) => (await s.words(id)).held))).toEqual([
      'discarded',
      'delivered',
      'delivered',
    ])
    const story = await s.outbox.event(ids[0] as bigint)
    expect(story?.states.find(({ subscription }) => subscription === 'held')?.reason).toBe('a test entry')
  })

  it('a row in flight: the result of that call does not count', async () => {
    const s = await stage(db, { flight: { answer: () => retry() } })
    const [id] = await s.emit(...docs('x'))
    await s.work('flight')
    await db.query(`update outbox.delivery set next_attempt_at = outbox.clock() where subscription = 'flight'`)
    await db.query(
      `update outbox.lane set owner = 'w', fence = fence + 1, lease_until = outbox.clock() + interval '1 minute' where subscription = 'flight'`,
    )
    const lanes = () =>
      db.query<{ owner: string; free: boolean }>(
        `select l.owner, l.lease_until <= outbox.clock() as free from outbox.lane l join outbox.delivery d on d.subscription = l.subscription and d.lane = l.lane where d.subscription = 'flight'`,
      )
    await s.outbox.discard('flight', await s.positionOf(id), BY)
    // Its owner can neither settle nor renew; nobody else gets the lane before the call is over.
    expect(await lanes()).toEqual([{ owner: 'interrupted w', free: false }])
  })
})

describe('groups', () => {
  it('dead letters are grouped by what went wrong, counted first, then retried or discarded together', async () => {
    const answer = ({ aggregateId }: { aggregateId: string }) =>
      rejected({
        code: aggregateId.startsWith('u') ? 'bad_unit' : 'bad_date',
        message: `field 7 of "${aggregateId}" is wrong`,
      })
    const s = await stage(db, { groups: { answer } })
    await s.emit(...docs('u1', 'u2', 'u3', 'd1'))
    await s.work('groups')
    const groups = await s.outbox.deadGroups({ subscription: 'groups' })
    expect(groups).toMatchObject([
      { subscription: 'groups', code: 'bad_unit', count: 3, state: 'dead' },
      { subscription: 'groups', code: 'bad_date', count: 1, message: 'field 7 of "d1" is wrong' },
    ])
    const [{ group } = { group: '' }] = groups
    expect(await s.outbox.deadLetters({ group })).toHaveLength(3)
    expect(await s.outbox.discard('groups', { group }, { ...BY, dryRun: true })).toMatchObject({
      matching: 3,
      discarded: 0,
      dryRun: true,
    })
    const count = (await audits()).length
    expect(await s.outbox.discard('groups', { group }, { ...BY, limit: 2 })).toMatchObject({
      matching: 3,
      discarded: 2,
    })
    expect(await s.outbox.retry('groups', { group }, BY)).toMatchObject({ retried: 1, matching: 1 })
    expect((await audits()).length).toBe(count + 2)
    expect(await s.outbox.deadGroups({ subscription: 'groups' })).toHaveLength(1)
  })
})

describe('correct', () => {
  it('changes this delivery only; before and after are in the audit row', async () => {
    const seen: unknown[] = []
    const answer = ({ payload }: { payload: unknown }) => {
      seen.push(payload)
      return (payload as { to?: string }).to === 'right' ? undefined : rejected()
    }
    const s = await stage(db, { mend: { answer } })
    const [id] = await s.emit({
      type: 'memo.sent',
      aggregate: ['memo', 1],
      payload: { to: 'wrong' },
    })
    await s.work('mend')
    const position = await s.positionOf(id)
    const result = await s.outbox.correct('mend', position, { payload: { to: 'right' } }, BY)
    expect(result).toMatchObject({ state: 'dead', position })
    await s.outbox.correct('mend', position, { headers: { actor: 'ada' } }, BY)
    await s.outbox.retry('mend', position, BY)
    await s.work('mend')
    expect(seen).toEqual([{ to: 'wrong' }, { to: 'right' }])
    expect(s.sinks.mend?.accepted[0]?.headers).toEqual({ actor: 'ada' })
    const [event] = await db.query<{ payload: unknown }>('select payload from outbox.event where id = $1', [id])
    expect(event?.payload).toEqual({ to: 'wrong' })
    const rows = (await s.outbox.audit({ subscription: 'mend' })).filter(({ action }) => action === 'correct')
    expect(rows.map(({ before, after }) => [before, after])).toEqual([
      [{ headers: null }, { headers: { actor: 'ada' }, state: 'dead' }],
      [{ payload: { to: 'wrong' } }, { payload: { to: 'right' }, state: 'dead' }],
    ])
  })

  it('refuses a delivered event, nothing to change, and a payload emit would refuse', async () => {
    const s = await stage(db, { whole: { ledger: true } })
    const [id] = await s.emit({ type: 'memo.sent', aggregate: ['memo', 2], payload: {} })
    await s.work('whole')
    const position = await s.positionOf(id)
    await expect(s.outbox.correct('whole', position, { payload: 1 }, BY)).rejects.toMatchObject({
      code: 'HMD_DELIVERY_STATE',
    })
    await expect(s.outbox.correct('whole', position, {}, BY)).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
    })
    await expect(s.outbox.correct('whole', position, { payload: Number.NaN }, BY)).rejects.toMatchObject({
      code: 'HMD_PAYLOAD_INVALID',
    })
  })
})

describe('pause and mode', () => {
  it('a paused subscription delivers nothing and says who and why; resume goes on', async () => {
    const s = await stage(db, { rest: {} })
    await s.work('rest')
    await s.outbox.pause('rest', { actor: 'ada', reason: 'reindexing' })
    const [id] = await s.emit(...docs('r'))
    await s.work('rest')
    expect((await s.words(id)).rest).toBe('pending')
    const stats = (await s.outbox.stats()).subscriptions.find(({ name }) => name === 'rest')
    expect(stats?.health).toMatchObject({ word: 'paused', why: 'paused by ada: reindexing' })
    await s.outbox.resume('rest', BY)
    await expect(s.outbox.resume('rest', BY)).rejects.toMatchObject({ code: 'HMD_DELIVERY_STATE' })
    await s.work('rest')
    expect((await s.words(id)).rest).toBe('delivered')
  })

  it.each(['where-it-began', 'now'] as const)('a dry run goes live from %s', async (from) => {
    const name = `dry-${from}`
    const s = await stage(db, { [name]: { mode: 'dry-run' } })
    const [id] = await s.emit(...docs(name))
    await s.work(name)
    expect(s.sinks[name]?.accepted).toEqual([])
    expect((await s.words(id))[name]).toBe('pending')
    await s.outbox.pause(name, BY)
    expect((await s.outbox.resume(name, BY)).mode).toBe('dry-run')
    await expect(s.outbox.mode(name, 'live', BY)).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
      field: 'from',
    })
    const result = await s.outbox.mode(name, 'live', { ...BY, from })
    const [next] = await s.emit(...docs(name))
    await s.work(name)
    const began = from === 'where-it-began'
    expect(result.skipped > 0).toBe(!began)
    expect((await s.words(id))[name]).toBe(began ? 'delivered' : undefined)
    expect((await s.words(next))[name]).toBe('delivered')
    expect(s.sinks[name]?.accepted.length).toBe(began ? 2 : 1)
  })
})
