// Order is not freshness: what the last event carries when writers of one aggregate do not lock
// each other, and the two ways to have it right.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { type Session, session } from '../../../../../test/support/session.ts'
import { value } from './script.ts'

type Lock = (tx: Session) => Promise<void>

const state = `select coalesce(json_agg(word order by word), '[]') from line where doc_id = 'x'`

async function writeLine(tx: Session, word: string): Promise<string[]> {
  await tx.run(`insert into line (doc_id, word) values ('x', $1)`, [word])
  return value<string[]>(tx, state)
}

/** Two writers add a child row each; both read the whole, then both emit it. */
async function twoWriters(env: Env, lock: Lock | undefined): Promise<void> {
  const { db, engine } = env
  await db.query('create table line (doc_id text, word text)')
  const outbox = engine.createOutbox({ pool: db.pool })
  const tell = (tx: Session, payload: string[]) =>
    outbox.emit(tx.client, { type: 'doc.updated', aggregate: ['doc', 'x'], payload })
  const a = await session(db, 'a')
  const b = await session(db, 'b')
  await a.begin()
  await b.begin()
  await lock?.(a)
  const waiting = lock === undefined ? undefined : b.startCall(() => lock(b))
  await waiting?.blocked(a)
  const whole = await writeLine(a, 'one')
  if (waiting === undefined) {
    const half = await writeLine(b, 'two')
    await tell(a, whole)
    await a.commit()
    await tell(b, half)
  } else {
    await tell(a, whole)
    await a.commit()
    await waiting.promise
    await tell(b, await writeLine(b, 'two'))
  }
  await b.commit()
}

/** The last thing an ordered sink accepted. */
async function lastAccepted(env: Env, loads: boolean): Promise<unknown> {
  const { db, engine } = env
  const sink = engine.testing.memorySink()
  const load = async () => new Map([['x', await value(db, state)]])
  const outbox = engine.createOutbox({ pool: db.pool })
  outbox.subscribe('search', {
    revision: 1,
    types: ['*'],
    from: 'beginning',
    sink,
    ...(loads && { load }),
  })
  await engine.testing.drain(outbox)
  await holds(db, 'I1', 'I3', 'I5', 'I8')
  return sink.accepted.at(-1)?.payload
}

/** What the guarantees say about it: the order is right, the payload is not. */
export const stalePayload = defineCase('stale-payload', async (env) => {
  await twoWriters(env, undefined)
  expect(await lastAccepted(env, false), 'stale, as documented').toEqual(['two'])
})

export const stalePayloadLocked = defineCase('stale-payload: right with a lock', async (env) => {
  const outbox = env.engine.createOutbox({ pool: env.db.pool })
  await twoWriters(env, (tx) => outbox.lock(tx.client, [['doc', 'x']]))
  expect(await lastAccepted(env, false)).toEqual(['one', 'two'])
})

export const stalePayloadLoaded = defineCase('stale-payload: right with load', async (env) => {
  await twoWriters(env, undefined)
  expect(await lastAccepted(env, true), 'loaded at delivery').toEqual(['one', 'two'])
})
