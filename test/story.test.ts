// The whole story through the public door: install, emit, roll back, two subscriptions, an outage and
// its end, a dead letter, a retry by a person, and what the numbers say. Read it from top to bottom.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutbox, migrate, type Outbox, type Worker } from '../packages/hermod/src/index.ts'
import { rejected, unavailable } from '../packages/hermod/src/sinks/index.ts'
import { drain, memorySink } from '../packages/hermod/src/testing/index.ts'
import { useDatabase } from './support/database.ts'
import { eventually } from './support/eventually.ts'

const db = useDatabase({ empty: true })
const search = memorySink({ name: 'search' })
const mail = memorySink({ name: 'mail', capabilities: { ledger: true } })
const by = { actor: 'ada', reason: 'the address was corrected' }

let outbox: Outbox
let worker: Worker
let approved: bigint

const titles = () => search.accepted.map(({ payload }) => (payload as { title: string }).title)
const statsOf = async (name: string) => {
  const { subscriptions } = await outbox.stats()
  return subscriptions.find((subscription) => subscription.name === name)
}

/** A row and its event in one transaction, as an application writes them. */
async function save(id: number, title: string, ...more: string[]): Promise<bigint[]> {
  return outbox.transaction(async (tx) => {
    await outbox.lock(tx, [['document', id]])
    await tx.query({
      text: `insert into document values ($1, $2) on conflict (id) do update set title = excluded.title`,
      values: [id, title],
    })
    const aggregate = ['document', id] as const
    const types = ['document.saved', ...more]
    return outbox.emit(
      tx,
      types.map((type) => ({ type, aggregate, payload: { id, title } })),
    )
  })
}

describe('a document and the outside world', () => {
  beforeAll(async () => {
    await db.query('create table document (id int primary key, title text not null)')
  })

  afterAll(async () => {
    await worker?.stop()
  })

  it('installs itself into an empty database, and a second time changes nothing', async () => {
    expect((await migrate(db.pool)).applied.length).toBeGreaterThan(0)
    expect((await migrate(db.pool)).applied).toEqual([])
  })

  it('has two subscriptions: an index that hears everything, and mail for approvals', async () => {
    outbox = createOutbox({ pool: db.pool })
    outbox.subscribe('search', {
      revision: 1,
      types: ['document.*'],
      sink: search,
      coalesce: 'latest',
    })
    outbox.subscribe('mail', { revision: 1, types: ['document.approved'], sink: mail })
    worker = await outbox.start()
  })

  it('delivers what was committed, to whoever asked for it', async () => {
    await save(1, 'Offer')
    await save(2, 'Contract', 'document.approved')
    await drain(outbox)
    expect(new Set(titles())).toEqual(new Set(['Offer', 'Contract']))
    expect(mail.accepted.map(({ type }) => type)).toEqual(['document.approved'])
  })

  it('delivers nothing of a transaction that rolled back', async () => {
    const changed = outbox.transaction(async (tx) => {
      await tx.query(`update document set title = 'Never' where id = 1`)
      await outbox.emit(tx, { type: 'document.saved', aggregate: ['document', 1], payload: {} })
      throw new Error('no signature')
    })
    await expect(changed).rejects.toThrow('no signature')
    await drain(outbox)
    expect(titles()).not.toContain('Never')
    expect(await db.query('select title from document where id = 1')).toEqual([{ title: 'Offer' }])
  })

  it('waits while search is away: nothing spent, nothing dead, mail goes on', async () => {
    search.clear()
    search.answer(() => unavailable({ message: 'connection refused' }))
    await save(3, 'Plan', 'document.approved')
    for (let version = 1; version <= 5; version++) await save(1, `Offer ${version}`)
    await eventually(async () => (await statsOf('search'))?.breaker.state !== 'closed')
    await eventually(() => mail.accepted.length === 2, { what: 'mail to be delivered meanwhile' })
    expect(search.accepted).toEqual([])
    expect(await statsOf('search')).toMatchObject({
      retrying: 0,
      dead: 0,
      health: { word: 'unavailable' },
    })
  })

  it('catches up when search is back, and the last change is the last one sent', async () => {
    search.answer(undefined)
    await drain(outbox)
    expect(titles()).toContain('Plan')
    const offers = titles().filter((title) => title.startsWith('Offer'))
    expect(offers.at(-1)).toBe('Offer 5')
    expect(await statsOf('search')).toMatchObject({ pending: 0, dead: 0, health: { word: 'ok' } })
  })

  it('sets aside a mail that can never be delivered, and goes on', async () => {
    mail.answer((event) => (event.aggregateId === '4' ? rejected({ message: 'no such mailbox' }) : undefined))
    const ids = await save(4, 'Letter', 'document.approved')
    approved = ids[1] as bigint
    await save(5, 'Report', 'document.approved')
    await drain(outbox)
    expect(mail.accepted.map(({ aggregateId }) => aggregateId)).toEqual(['2', '3', '5'])
    const [letter, ...others] = await outbox.deadLetters({ subscription: 'mail' })
    expect(others).toEqual([])
    expect(letter).toMatchObject({ eventId: approved, state: 'dead', error: 'no such mailbox' })
  })

  it('sends it after a person has corrected the cause, and remembers who decided', async () => {
    mail.answer(undefined)
    const [letter] = await outbox.deadLetters({ subscription: 'mail' })
    await outbox.retry('mail', letter?.position as bigint, by)
    await drain(outbox)
    expect(mail.accepted.at(-1)).toMatchObject({ aggregateId: '4', type: 'document.approved' })
    const [decision] = await outbox.audit()
    expect(decision).toMatchObject({ action: 'retry', actor: 'ada', reason: by.reason })
  })

  it('tells the whole story of an event', async () => {
    const story = await outbox.event(approved)
    expect(story).toMatchObject({ type: 'document.approved', aggregate: ['document', '4'] })
    const states = story?.states.map(({ subscription, state }) => [subscription, state])
    expect(states).toEqual([
      ['mail', 'delivered'],
      ['search', 'delivered'],
    ])
  })

  it('stops politely: every lane given back, nothing left to do', async () => {
    await worker.stop()
    const held = await db.query('select lane from outbox.lane where owner is not null')
    expect(held).toEqual([])
    const { subscriptions, unnumbered } = await outbox.stats()
    expect(unnumbered).toBe(0)
    for (const { pending, retrying, dead, unknown } of subscriptions) {
      expect({ pending, retrying, dead, unknown }).toEqual({
        pending: 0,
        retrying: 0,
        dead: 0,
        unknown: 0,
      })
    }
  })
})
