// Emitting: the order writers make among themselves, idempotency keys, a COMMIT nobody heard of.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { type Session, session } from '../../../../../test/support/session.ts'
import { emit, logged, step, value } from './script.ts'

/** Three writers queue up for one row; half of the time the step comes in between. */
export const writeThenEmit = defineCase('write-then-emit', async ({ db }) => {
  await db.query(`create table doc (id text primary key, v int not null default 0);
                  insert into doc (id) values ('x')`)
  const change = `update doc set v = v + 1 where id = 'x' returning v`
  for (const between of [false, true]) {
    const writers = [await session(db, 'a'), await session(db, 'b'), await session(db, 'c')]
    for (const writer of writers) await writer.begin()
    const [a, b, c] = writers as [Session, Session, Session]
    await emit(a, 'x', await value(a, change))
    const second = b.start(change)
    await second.blocked(a)
    const third = c.start(change)
    await third.blocked(b)
    await a.commit()
    // Both wait for the new version of the row now, and PostgreSQL does not say who gets it first.
    const waiting = [
      { writer: b, changed: second.promise },
      { writer: c, changed: third.promise },
    ]
    const first = await Promise.race(waiting.map((one) => one.changed.then(() => one)))
    for (const { writer, changed } of [first, ...waiting.filter((one) => one !== first)]) {
      await emit(writer, 'x', (await changed)[0]?.v as number)
      if (between) expect(await step(db)).toBe(1)
      await writer.commit()
    }
    expect(await step(db)).toBe(between ? 1 : 3)
  }
  expect(await logged(db)).toHaveLength(6)
  await holds(db, 'I1', 'I3', 'I5')
})

const event = (amount: number) => ({
  type: 'order.paid',
  aggregate: ['order', 1] as const,
  payload: { amount },
  key: 'order-1-paid',
})

export const idempotencyRace = defineCase('idempotency-race', async ({ db, engine }) => {
  const outbox = engine.createOutbox({ pool: db.pool })
  const a = await session(db, 'a')
  const b = await session(db, 'b')
  const race = async () => {
    await a.begin()
    await b.begin()
    const [first] = await outbox.emit(a.client, event(1))
    const second = b.startCall((tx) => outbox.emit(tx, event(1)))
    await second.blocked(a)
    return { first, second }
  }
  const rolledBack = await race()
  await a.rollback()
  const [own] = await rolledBack.second.promise
  expect(own).not.toBe(rolledBack.first)
  await b.rollback()

  const committed = await race()
  await a.commit()
  expect(await committed.second.promise, 'the id of the one event').toEqual([committed.first])
  await b.commit()
  await b.begin()
  const conflict = outbox.emit(b.client, event(2))
  await expect(conflict).rejects.toMatchObject({ code: 'HMD_IDEMPOTENCY_CONFLICT' })
  await b.rollback()
  expect(await step(db)).toBe(1)
  await holds(db, 'I1', 'I3', 'I5')
})

/** COMMIT waits in a deferred trigger, so that the connection is cut while it runs. */
async function cutDuringCommit({ db, engine }: Env, cut: (writer: Session) => Promise<void>) {
  await db.query(`create table doc (id int);
    create function wait_in_commit() returns trigger language plpgsql as $$ begin
      perform pg_advisory_xact_lock(7); return null; end $$;
    create constraint trigger slow after insert on doc deferrable initially deferred
      for each row execute function wait_in_commit()`)
  const outbox = engine.createOutbox({ pool: db.pool })
  const gate = await session(db, 'gate')
  const writer = await session(db, 'writer')
  await gate.run('select pg_advisory_lock(7)')
  await writer.begin()
  await writer.run('insert into doc values (1)')
  await outbox.emit(writer.client, event(1))
  const committing = writer.start('commit')
  await committing.blocked(gate)
  await cut(writer)
  await expect(committing.promise).rejects.toThrow(/terminat/)
  await gate.run('select pg_advisory_unlock(7)')
  // The outcome is not known: the writer does it again with the same key.
  const again = await session(db, 'again')
  await again.begin()
  await outbox.emit(again.client, event(1))
  await again.commit()
  expect(await step(db), 'events after a retry with the same key').toBe(1)
  await holds(db, 'I1', 'I3', 'I5')
  return value<number>(db, 'select count(*)::int from doc')
}

export const commitUnknown = defineCase('commit-unknown', async (env) => {
  const rows = await cutDuringCommit(env, async (writer) => {
    const { stream } = (writer.client as unknown as { connection: { stream: { destroy(): void } } }).connection
    stream.destroy()
  })
  expect(rows, 'the script: the commit had been made').toBe(1)
})

export const commitUnknownRolledBack = defineCase('commit-unknown: the server gave it up', async (env) => {
  const rows = await cutDuringCommit(env, (writer) => writer.kill())
  expect(rows, 'the script: the commit had not been made').toBe(0)
})
