// What an operator decides: retry, discard, correct, pause, mode. Each leaves one audit row.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { session } from '../../../../test/support/session.ts'
import { retry as retryNow } from '../../src/desk/retry.ts'
import { rejected, retry } from '../../src/sinks/sink.ts'
import { BY, docs, stage } from './stage.ts'

const db = useDatabase()

const audits = () => db.query('select * from outbox.audit order by id')
const accepted = (sink: { accepted: readonly { payload: unknown }[] } | undefined) =>
  sink?.accepted.map(({ payload }) => (payload as { n: number }).n)

describe('retry', () => {
  it('a dead letter is due now, keeps when it first failed, and is delivered', async () => {
    const s = await stage(db, { again: { answer: () => rejected({ code: 'no' }), order: 'none' } })
    const [id] = await s.emit(...docs('a'))
    await s.work('again')
    const position = await s.positionOf(id)
    const [before] = await db.query(`select * from outbox.delivery where subscription = 'again'`)
    const result = await s.outbox.retry('again', position, BY)
    expect(result).toMatchObject({ retried: 1, superseded: 0, repeated: false })
    const [row] = await db.query(`select * from outbox.delivery where subscription = 'again'`)
    expect(row).toMatchObject({
      state: 'retrying',
      attempts: 0,
      code: 'no',
      first_failed_at: before?.first_failed_at,
    })
    expect(await audits()).toMatchObject([
      {
        actor: 'ada',
        action: 'retry',
        reason: 'because',
        subscription: 'again',
        event_id: String(id),
        pos: String(position),
        count: '1',
      },
    ])
    s.sinks.again?.answer(undefined)
    await s.work('again')
    expect(await s.words(id)).toMatchObject({ again: 'delivered' })
    const story = await s.outbox.event(id as bigint)
    expect(story?.attempts.map(({ outcome, own }) => [outcome, own])).toContainEqual([
      'rejected',
      true,
    ])
    expect(story?.audit.map(({ action }) => action)).toEqual(['retry'])
  })

  it('the same request id does nothing twice, also at the same time', async () => {
    const s = await stage(db, { twice: { answer: () => rejected() } })
    const [id] = await s.emit(...docs('t'))
    await s.work('twice')
    const position = await s.positionOf(id)
    const by = { ...BY, requestId: 'req-1' }
    const results = await Promise.all([1, 2, 3].map(() => s.outbox.retry('twice', position, by)))
    expect(results.map(({ repeated }) => repeated).sort()).toEqual([false, true, true])
    expect(results.map(({ retried }) => retried)).toEqual([1, 1, 1])
    expect((await audits()).filter(({ request_id }) => request_id === 'req-1')).toHaveLength(1)
    s.sinks.twice?.answer(undefined)
    await s.work('twice')
    expect(await s.outbox.retry('twice', position, by)).toMatchObject({
      retried: 1,
      repeated: true,
    })
    await expect(s.outbox.pause('twice', by)).rejects.toMatchObject({
      code: 'HMD_IDEMPOTENCY_CONFLICT',
    })
  })

  it('refuses what is not there, not in a state for it, or without anybody to answer for it', async () => {
    const s = await stage(db, { strict: { answer: () => rejected() } })
    const [id] = await s.emit(...docs('s'))
    await s.work('strict')
    const position = await s.positionOf(id)
    const count = (await audits()).length
    const refused = (code: string) => ({ code })
    await expect(s.outbox.retry('strict', 999_999n, BY)).rejects.toMatchObject(
      refused('HMD_DELIVERY_UNKNOWN'),
    )
    await expect(s.outbox.retry('strikt', 1n, BY)).rejects.toThrow(/did you mean strict/)
    await expect(s.outbox.retry('strict', position, { actor: '' })).rejects.toMatchObject(
      refused('HMD_OPTION_INVALID'),
    )
    await expect(
      s.outbox.discard('strict', position, { actor: 'ada' } as never),
    ).rejects.toMatchObject(refused('HMD_OPTION_INVALID'))
    await s.outbox.discard('strict', position, BY)
    await expect(s.outbox.retry('strict', position, BY)).rejects.toMatchObject({
      code: 'HMD_DELIVERY_STATE',
      details: { state: 'discarded', allowed: ['dead', 'unknown', 'retrying'] },
    })
    expect((await audits()).length).toBe(count + 1)
  })

  it('never lets a stale event overwrite newer state: refused, or everything after it is sent again', async () => {
    let poison = true
    const answer = ({ payload }: { payload: unknown }) =>
      poison && (payload as { n: number }).n === 0 ? rejected() : undefined
    const s = await stage(db, { order: { answer } })
    const events = docs('o', 'o', 'o')
    const [first] = await s.emit(...events.slice(0, 1))
    await s.work('order')
    await s.emit(...events.slice(1))
    await s.work('order')
    poison = false
    const position = await s.positionOf(first)
    expect(accepted(s.sinks.order)).toEqual([1, 2])
    await expect(s.outbox.retry('order', position, BY)).rejects.toMatchObject({
      code: 'HMD_DELIVERY_SUPERSEDED',
    })
    expect(await s.outbox.retry('order', { state: 'dead' }, BY)).toMatchObject({
      retried: 0,
      superseded: 1,
    })
    await s.outbox.retry('order', position, { ...BY, force: true })
    await s.work('order')
    expect(accepted(s.sinks.order)).toEqual([1, 2, 0, 1, 2])
    expect(await db.query(`select 1 from outbox.delivery where subscription = 'order'`)).toEqual([])
  })

  it('several dead letters of one aggregate go out in order, the later ones blocked until then', async () => {
    let mood: 'dead' | 'first fails' | 'fine' = 'dead'
    const answer = ({ payload }: { payload: unknown }) => {
      if (mood === 'dead') return rejected()
      return mood === 'first fails' && (payload as { n: number }).n === 0 ? retry() : undefined
    }
    const s = await stage(db, { chain: { answer } })
    const ids = await s.emit(...docs('c', 'c', 'c'))
    await s.work('chain')
    const words = async () => (await Promise.all(ids.map((id) => s.words(id)))).map((w) => w.chain)
    expect(await words()).toEqual(['dead', 'dead', 'dead'])
    // The last first: it must wait for the others all the same.
    for (const id of [...ids].reverse()) await s.outbox.retry('chain', await s.positionOf(id), BY)
    expect(await words()).toEqual(['retrying', 'blocked', 'blocked'])
    mood = 'first fails'
    await s.work('chain')
    expect(await words()).toEqual(['retrying', 'blocked', 'blocked'])
    expect(accepted(s.sinks.chain)).toEqual([])
    mood = 'fine'
    await s.outbox.retry('chain', await s.positionOf(ids[0]), BY)
    await s.work('chain')
    expect(accepted(s.sinks.chain)).toEqual([0, 1, 2])
    expect(await words()).toEqual(['delivered', 'delivered', 'delivered'])
  })
})

describe('discard', () => {
  it('releases what was held behind it', async () => {
    const answer = ({ payload }: { payload: unknown }) =>
      (payload as { n: number }).n === 0 ? rejected() : undefined
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
    expect(story?.states.find(({ subscription }) => subscription === 'held')?.reason).toBe(
      'a test entry',
    )
  })

  it('a row in flight: the result of that call does not count', async () => {
    const s = await stage(db, { flight: { answer: () => retry() } })
    const [id] = await s.emit(...docs('x'))
    await s.work('flight')
    await db.query(
      `update outbox.delivery set next_attempt_at = outbox.clock() where subscription = 'flight'`,
    )
    await db.query(
      `update outbox.lane set owner = 'w', fence = fence + 1, lease_until = outbox.clock() + interval '1 minute' where subscription = 'flight'`,
    )
    const lanes = () =>
      db.query<{ fence: string }>(
        `select l.fence from outbox.lane l join outbox.delivery d on d.subscription = l.subscription and d.lane = l.lane where d.subscription = 'flight'`,
      )
    const [before] = await lanes()
    await s.outbox.discard('flight', await s.positionOf(id), BY)
    expect(BigInt((await lanes())[0]?.fence ?? 0)).toBe(BigInt(before?.fence ?? 0) + 1n)
  })
})

describe('the lane', () => {
  it('is locked first: a command waits for the settle that holds it', async () => {
    const s = await stage(db, { busy: { answer: () => rejected() } })
    const [id] = await s.emit(...docs('b'))
    await s.work('busy')
    const position = await s.positionOf(id)
    const settle = await session(db, 'settle')
    await settle.begin()
    await settle.run(`select 1 from outbox.lane where subscription = 'busy' for update`)
    const operator = await session(db, 'operator')
    const pool = {
      connect: async () => Object.assign(operator.client, { release() {} }),
      query: (q: never) => operator.client.query(q),
    }
    const waiting = operator.startCall(() => retryNow(pool as never, 'busy', position, BY))
    await waiting.blocked(settle)
    // The row it meant is gone when it gets the lock: it looks again.
    await settle.run(`delete from outbox.delivery where subscription = 'busy'`)
    await settle.commit()
    await expect(waiting.promise).rejects.toMatchObject({ code: 'HMD_DELIVERY_UNKNOWN' })
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
    const [event] = await db.query<{ payload: unknown }>(
      'select payload from outbox.event where id = $1',
      [id],
    )
    expect(event?.payload).toEqual({ to: 'wrong' })
    const rows = (await s.outbox.audit({ subscription: 'mend' })).filter(
      ({ action }) => action === 'correct',
    )
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
    await expect(
      s.outbox.correct('whole', position, { payload: Number.NaN }, BY),
    ).rejects.toMatchObject({ code: 'HMD_PAYLOAD_INVALID' })
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
