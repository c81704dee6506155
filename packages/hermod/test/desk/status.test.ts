// The view outbox.status: one word for every event and subscription, and the same words as the docs.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { states } from '../../src/desk/find.ts'
import { rejected, retry } from '../../src/sinks/sink.ts'
import { docs, stage } from './stage.ts'

const db = useDatabase()

describe('the words', () => {
  it('docs/reference/states.md lists exactly the nine', () => {
    const page = new URL('../../../../docs/reference/states.md', import.meta.url)
    const listed = [...readFileSync(page, 'utf8').matchAll(/^\| `([a-z]+)` \|/gm)].map((m) => m[1])
    expect(listed).toEqual([...states])
  })

  it('an event before any worker: pending, or scheduled when it is not due', async () => {
    const s = await stage(db, { first: { types: ['document.*'] }, mail: { types: ['memo.sent'] } })
    const [now, later] = await s.emit(...docs('a'), {
      type: 'document.updated',
      aggregate: ['document', 'b'],
      notBefore: new Date(Date.now() + 3.6e6),
    })
    expect(await s.words(now)).toEqual({ first: 'pending' })
    expect(await s.words(later)).toEqual({ first: 'scheduled' })
    await s.number()
    expect(await s.words(now)).toEqual({ first: 'pending' })
    expect(await s.words(later)).toEqual({ first: 'scheduled' })
    await s.work('first')
    expect(await s.words(now)).toEqual({ first: 'delivered' })
  })

  it('delivered, retrying, blocked behind it, dead, and released followers', async () => {
    const fails = new Set(['retry', 'dead', 'hold'])
    const answer = (event: { aggregateId: string }) =>
      !fails.has(event.aggregateId) ? undefined : event.aggregateId === 'retry' ? retry() : rejected({ code: 'no' })
    const s = await stage(db, { soft: { answer }, firm: { answer, onDead: 'hold' } })
    const ids = await s.emit(...docs('fine', 'retry', 'retry', 'dead'))
    await s.work('soft', 'firm')
    fails.delete('dead')
    const [after] = await s.emit(...docs('dead'))
    await s.work('soft', 'firm')
    const words = await Promise.all([...ids, after].map((id) => s.words(id)))
    expect(words.map((w) => w.soft)).toEqual(['delivered', 'retrying', 'blocked', 'dead', 'delivered'])
    expect(words.map((w) => w.firm)).toEqual(['delivered', 'retrying', 'blocked', 'dead', 'blocked'])
    const [row] = await db.query('select blocked_by_pos from outbox.status where event_id = $1 and subscription = $2', [
      ids[2],
      'soft',
    ])
    expect(BigInt(String(row?.blocked_by_pos))).toBe(await s.positionOf(ids[1]))
  })

  it('processing: just above the cursor of a leased lane, and a message being sent', async () => {
    const s = await stage(db, { leased: { batch: { count: 2 } }, post: { ledger: true } })
    const ids = await s.emit(...docs('p', 'p', 'p'))
    await s.number()
    await db.query(
      `update outbox.lane set owner = 'w', lease_until = outbox.clock() + interval '1 minute' where subscription = 'leased'`,
    )
    const words = await Promise.all(ids.map((id) => s.words(id)))
    expect(words.map((w) => w.leased)).toEqual(['processing', 'processing', 'pending'])
    await db.query(`update outbox.lane set owner = null, lease_until = '-infinity' where subscription = 'leased'`)
    await s.work('post')
    expect((await s.words(ids[0])).post).toBe('delivered')
    await db.query(`update outbox.delivery set state = 'sending' where subscription = 'post' and event_id = $1`, [
      ids[0],
    ])
    expect((await s.words(ids[0])).post).toBe('processing')
  })

  it('no word before a subscription starts, nor where its filter at that position did not match', async () => {
    const s = await stage(db, { old: { types: ['memo.*'] } })
    const [before] = await s.emit(...docs('f'))
    await s.number()
    await stage(db, {
      old: { revision: 2, types: ['memo.*', 'document.*'] },
      late: { from: 'now' },
    })
    const [after] = await s.emit(...docs('f'))
    await s.number()
    const none = await s.words(before)
    expect([none.old, none.late]).toEqual([undefined, undefined])
    expect(await s.words(after)).toMatchObject({ old: 'pending', late: 'pending' })
  })

  it('a row outlives its event', async () => {
    const s = await stage(db, { keeps: { answer: () => rejected() } })
    const [id] = await s.emit(...docs('gone'))
    await s.work('keeps')
    await db.query('delete from outbox.log where event_id = $1', [id])
    expect((await s.words(id)).keeps).toBe('dead')
    await db.query('delete from outbox.event where id = $1', [id])
    expect(await s.words(id)).toEqual({ keeps: 'dead' })
  })

  it('numbered in a part of the log that retention emptied: delivered', async () => {
    const s = await stage(db, { kept: {} })
    const [id] = await s.emit(...docs('old'))
    await s.work('kept')
    await db.query('delete from outbox.log where event_id = $1', [id])
    expect((await s.words(id)).kept).toBe('delivered')
  })
})

describe('I6', () => {
  it('every event and matching subscription has exactly one word', async () => {
    const moods = [() => undefined, () => retry(), () => rejected({ code: 'x' })]
    const answer = (event: { aggregateId: string }) => moods[Number(event.aggregateId) % 3]?.()
    const s = await stage(db, {
      i6a: { answer, types: ['document.*'] },
      i6b: { answer, coalesce: 'latest' },
      i6c: { answer, order: 'none', aggregates: ['document'] },
      i6d: { answer, ledger: true },
      i6e: { answer, lanes: 1, onDead: 'hold' },
    })
    for (let round = 0; round < 4; round++) {
      const some = docs(...Array.from({ length: 30 }, (_, n) => String((n * 7 + round) % 11)))
      const later = new Date(Date.now() + 3.6e6)
      await s.emit(
        ...some,
        { type: 'memo.sent', aggregate: ['memo', round] },
        { type: 'memo.sent', aggregate: ['memo', round], notBefore: later },
      )
      if (round < 3) await s.work('i6a', 'i6b', 'i6c', 'i6d', 'i6e')
      if (round === 2) await s.outbox.discard('i6a', { state: 'dead' }, { actor: 'ada', reason: 'x' })
    }
    const rows = await db.query<{ wrong: number; expected: number }>(
      `with expected as (
         select e.id, s.name from outbox.event e cross join outbox.subscription s
           left join outbox.log g on g.event_id = e.id
          where s.name like 'i6_' and (g.pos is null and e.created_at > s.created_at or g.pos > s.start_pos)
            and exists (select from (select * from outbox.filter f where f.subscription = s.name and f.from_pos < coalesce(g.pos, 1e18)
                                      order by f.from_pos desc limit 1) f
                         where outbox.matches(f.types, e.type) and (f.aggregates is null or e.aggregate_type = any (f.aggregates))))
       , found as materialized (
         select event_id, subscription, count(*) filter (where state = any ($1::text[])) as n from outbox.status group by 1, 2)
       select count(*)::int as expected, count(*) filter (where f.n is distinct from 1)::int as wrong
         from expected x left join found f on f.event_id = x.id and f.subscription = x.name`,
      [states],
    )
    expect(rows[0]).toMatchObject({ wrong: 0 })
    expect(Number(rows[0]?.expected)).toBeGreaterThan(400)
    const words = await db.query<{ state: string }>(
      `select distinct state from outbox.status where subscription like 'i6_' order by 1`,
    )
    expect(words.map((row) => row.state)).toEqual([
      'blocked',
      'dead',
      'delivered',
      'discarded',
      'pending',
      'retrying',
      'scheduled',
    ])
  })
})
