// Retrying deliveries: due again, once per request, and never a stale event over a newer one.

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
    expect(story?.attempts.map(({ outcome, own }) => [outcome, own])).toContainEqual(['rejected', true])
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
    await expect(s.outbox.retry('strict', 999_999n, BY)).rejects.toMatchObject(refused('HMD_DELIVERY_UNKNOWN'))
    await expect(s.outbox.retry('strikt', 1n, BY)).rejects.toThrow(/did you mean strict/)
    await expect(s.outbox.retry('strict', position, { actor: '' })).rejects.toMatchObject(refused('HMD_OPTION_INVALID'))
    await expect(s.outbox.discard('strict', position, { actor: 'ada' } as never)).rejects.toMatchObject(
      refused('HMD_OPTION_INVALID'),
    )
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
