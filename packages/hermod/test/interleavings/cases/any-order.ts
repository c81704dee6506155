// Random scripts: writers that begin, emit, undo, commit and roll back in any order, steps that cut
// windows at any place, events that are due at any time. The seed is in every failure.

import { expect } from 'vitest'
import { type Case, defineCase, type Env } from '../../../../../test/support/case.ts'
import { violations } from '../../../../../test/support/invariants.ts'
import { type Session, session } from '../../../../../test/support/session.ts'
import { value } from './script.ts'

const writers = 5
const actions = 150

/** Mulberry32: small, and the same everywhere. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** One change of a row nobody else has locked, and its event; `v` is the order of changes. */
const CHANGE = `
  with free as (select id from doc where id = 'd' || $1::int for update skip locked),
       changed as (update doc set v = v + 1 from free where doc.id = free.id returning doc.id, doc.v)
  select outbox.emit('doc.updated', 'doc', id, json_build_object('v', v)) from changed`

const LATER = `
  select outbox.emit('doc.reminded', 'later', 'r' || $1::int, '{}', null, outbox.clock() + $1::int * interval '1 second')`

type Writer = { readonly tx: Session; open: boolean; saved: boolean }

async function act(writer: Writer, random: (below: number) => number): Promise<void> {
  const { tx } = writer
  if (!writer.open) {
    await tx.begin()
    Object.assign(writer, { open: true, saved: false })
    return
  }
  const dice = random(20)
  if (dice < 10) await tx.run(CHANGE, [random(6)])
  else if (dice === 10) await tx.run(LATER, [random(30)])
  else if (dice === 11) await tx.run('select pg_current_xact_id()')
  else if (dice === 12) {
    await tx.run('savepoint s')
    writer.saved = true
  } else if (dice === 13 && writer.saved) await tx.run('rollback to s')
  else if (dice === 14) {
    await tx.rollback()
    writer.open = false
  } else if (dice > 14) {
    await tx.commit()
    writer.open = false
  }
}

async function play({ db, engine }: Env, seed: number): Promise<void> {
  const random = randomOf(seed)
  const clock = await engine.testing.fakeClock(db.pool)
  await db.query(`create table doc (id text primary key, v int not null default 0);
                  insert into doc (id) select 'd' || n from generate_series(0, 5) n`)
  const all: Writer[] = []
  for (let n = 0; n < writers; n++) all.push({ tx: await session(db, `writer ${n}`), open: false, saved: false })
  const stepper = await session(db, 'stepper')
  const steps = async () => stepper.run('select from outbox.sequence($1)', [1 + random(4)])
  for (let n = 0; n < actions; n++) {
    if (random(4) === 0) await steps()
    else if (random(12) === 0) await clock.advance(random(3_000))
    else await act(all[random(writers)] as Writer, random)
  }
  for (const { tx, open } of all) if (open) await tx.commit()
  await clock.advance(60_000)
  while (await value(stepper, 'select more or numbered > 0 from outbox.sequence(3)'));
  const left = await value<number>(
    db,
    'select count(*)::int - (select count(*)::int from outbox.log) from outbox.event',
  )
  const scheduled = await value<number>(db, 'select count(*)::int from outbox.scheduled')
  const found = await violations(db, 'I1', 'I3', 'I5')
  expect({ seed, left, scheduled, ...found }).toEqual({ seed, left: 0, scheduled: 0 })
}

export function anyOrder(seed: number): Case {
  return defineCase(`any order: seed ${seed}`, (env) => play(env, seed))
}
