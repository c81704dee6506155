// Finding events: every condition, pages that do not shift, bounds, and the story of one event.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { states } from '../../src/desk/find.ts'
import { rejected, retry } from '../../src/sinks/sink.ts'
import { BY, docs, stage } from './stage.ts'

const db = useDatabase()
const hour = 3_600_000

describe('find', () => {
  it('by state, type, aggregate, actor, time and subscription', async () => {
    const answer = ({ aggregateId }: { aggregateId: string }) =>
      aggregateId === 'bad' ? rejected() : aggregateId === 'slow' ? retry() : undefined
    const s = await stage(db, { a: { answer, types: ['document.*'] }, b: { types: ['memo.*'] } })
    const later = new Date(Date.now() + hour)
    const ids = await s.emit(
      ...docs('good', 'bad', 'slow', 'slow'),
      {
        type: 'memo.sent',
        aggregate: ['memo', 7],
        payload: { to: 'Ünal' },
        headers: { actor: 'ada' },
      },
      { type: 'memo.sent', aggregate: ['memo', 8], notBefore: later },
    )
    await s.work('a')
    const found = async (filter: Parameters<typeof s.outbox.find>[0]) =>
      (await s.outbox.find(filter)).events.map(({ id }) => ids.indexOf(id)).sort()
    expect(await found({ state: 'delivered' })).toEqual([0])
    expect(await found({ state: 'dead' })).toEqual([1])
    expect(await found({ state: 'retrying' })).toEqual([2])
    expect(await found({ state: 'blocked' })).toEqual([3])
    expect(await found({ state: 'pending' })).toEqual([4])
    expect(await found({ state: 'scheduled' })).toEqual([5])
    expect(await found({ state: 'scheduled', subscription: 'a' })).toEqual([])
    expect(await found({ state: 'unknown' })).toEqual([])
    expect(await found({ type: 'memo.*' })).toEqual([4])
    expect(await found({ type: 'document.updated', aggregate: ['document', 'slow'] })).toEqual([2, 3])
    expect(await found({ state: 'dead', type: 'memo.sent' })).toEqual([])
    expect(await found({ actor: 'ada' })).toEqual([4])
    expect(await found({ subscription: 'b' })).toEqual([4])
    expect(await found({ subscription: 'b', state: 'delivered' })).toEqual([])
    const since = new Date(Date.now() - hour)
    expect(await found({ since, text: 'ünal' })).toEqual([4])
    expect(await found({ since, state: 'dead', text: 'BAD' })).toEqual([1])
    expect(await found({ since: new Date(Date.now() + hour) })).toEqual([])
    expect(await found({ until: since })).toEqual([])
    const page = await s.outbox.find({ actor: 'ada' })
    expect(page.events[0]).toMatchObject({
      type: 'memo.sent',
      actor: 'ada',
      states: { b: 'pending' },
    })
    expect(page.events[0]).not.toHaveProperty('payload')
    const open = await s.outbox.find({ actor: 'ada' }, { payload: true })
    expect(open.events[0]?.payload).toEqual({ to: 'Ünal' })
  })

  it('pages do not shift while events arrive', async () => {
    const s = await stage(db, {})
    await s.emit(...docs(...Array.from({ length: 25 }, () => 'page')))
    await s.number()
    const filter = { aggregate: ['document', 'page'] as const }
    const first = await s.outbox.find(filter, { limit: 10 })
    await s.emit(...docs('page', 'page'))
    await s.number()
    const second = await s.outbox.find(filter, { limit: 10, cursor: first.cursor ?? '' })
    const third = await s.outbox.find(filter, { limit: 10, cursor: second.cursor ?? '' })
    const seen = [first, second, third].flatMap(({ events }) => events.map(({ position }) => position))
    expect(seen).toHaveLength(25)
    expect(seen).toEqual([...seen].sort((a, b) => Number((b ?? 0n) - (a ?? 0n))))
    expect(new Set(seen).size).toBe(25)
    expect(third.cursor).toBeNull()
    const other = s.outbox.find({ type: 'memo.*' }, { cursor: first.cursor ?? '' })
    await expect(other).rejects.toMatchObject({ code: 'HMD_CURSOR_INVALID' })
  })

  it.each(['', 'rubbish', Buffer.from('1.0123456789abcdef.5').toString('base64url'), '../../etc', 'é'])(
    'refuses the cursor %j',
    async (cursor) => {
      const s = await stage(db, {})
      await expect(s.outbox.find({}, { cursor })).rejects.toMatchObject({
        code: 'HMD_CURSOR_INVALID',
      })
    },
  )

  it('is bounded: range, page, state, names of conditions', async () => {
    const s = await stage(db, {})
    const code = (expected: string) => ({ code: expected })
    await expect(s.outbox.find({ text: 'x' })).rejects.toMatchObject(code('HMD_FIND_RANGE'))
    const since = new Date(Date.now() - 25 * hour)
    await expect(s.outbox.find({ text: 'x', since })).rejects.toMatchObject(code('HMD_FIND_RANGE'))
    for (const limit of [0, 201, 1.5, Number.NaN])
      await expect(s.outbox.find({}, { limit })).rejects.toMatchObject(code('HMD_OPTION_INVALID'))
    await expect(s.outbox.find({ state: 'failed' } as never)).rejects.toThrow(states.join(', '))
    await expect(s.outbox.find({ typ: 'x' } as never)).rejects.toMatchObject(code('HMD_OPTION_UNKNOWN'))
    await expect(s.outbox.find({ since: 'soon' })).rejects.toMatchObject(code('HMD_OPTION_INVALID'))
  })

  it('says so when it takes longer than two seconds', async () => {
    const s = await stage(db, {})
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('lock table outbox.log in access exclusive mode')
    try {
      await expect(s.outbox.find({})).rejects.toMatchObject({ code: 'HMD_FIND_TIMEOUT' })
    } finally {
      await client.query('rollback')
      client.release()
    }
  })

  it('conditions are values, never SQL', async () => {
    const s = await stage(db, { q: {} })
    const nasty = `'; drop table outbox.event; --`
    const since = new Date(Date.now() - hour)
    const filter = {
      type: nasty,
      actor: nasty,
      text: nasty,
      since,
      subscription: nasty,
      state: 'pending' as const,
    }
    expect(await s.outbox.find({ ...filter, aggregate: [nasty, nasty] })).toEqual({
      events: [],
      cursor: null,
    })
  })
})

describe('event', () => {
  it('tells everything that happened to it', async () => {
    let fails = true
    const answer = () => (fails ? retry({ code: 'busy', message: 'try later' }) : undefined)
    const s = await stage(db, { story: { answer } })
    const [first, second] = await s.emit(...docs('told', 'told'))
    await s.work('story')
    const position = await s.positionOf(second)
    const told = await s.outbox.event({ position })
    expect(told).toMatchObject({
      id: second,
      position,
      stage: 'numbered',
      type: 'document.updated',
      aggregate: ['document', 'told'],
    })
    expect(told).not.toHaveProperty('payload')
    expect(told?.sequencedAt).toBeInstanceOf(Date)
    const mine = told?.states.find(({ subscription }) => subscription === 'story')
    expect(mine).toMatchObject({ state: 'blocked', blockedBy: await s.positionOf(first) })
    expect(told?.neighbours.map(({ id }) => id)).toEqual([first, second].filter((id) => id !== second))
    const head = await s.outbox.event(first as bigint, { payload: true })
    expect(head?.payload).toEqual({ n: 0 })
    expect(head?.states.find(({ subscription }) => subscription === 'story')).toMatchObject({
      state: 'retrying',
      attempts: 1,
      code: 'busy',
      error: 'try later',
    })
    expect(head?.attempts).toMatchObject([{ own: false }, { own: true, outcome: 'retry', code: 'busy' }])
    fails = false
    await s.outbox.retry('story', { state: 'retrying' }, BY)
    await s.work('story')
    const after = await s.outbox.event(first as bigint)
    expect(after?.states.find(({ subscription }) => subscription === 'story')?.state).toBe('delivered')
    expect(after?.audit).toMatchObject([{ action: 'retry', actor: 'ada', count: 1 }])
  })

  it('is undefined where there is none, and refuses what is no number', async () => {
    const s = await stage(db, {})
    expect(await s.outbox.event(999_999n)).toBeUndefined()
    expect(await s.outbox.event({ position: 999_999n })).toBeUndefined()
    await expect(s.outbox.event({ position: '1 or 1=1' })).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
    })
  })
})
