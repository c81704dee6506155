// The scripted sessions of test/support, on a real database: blocking is seen, not timed.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../test/support/database.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { session } from '../../../test/support/session.ts'

const db = useDatabase({ empty: true })

describe('session', () => {
  it('shows who waits for whom, and goes on when the lock is released', async () => {
    await db.query('create table account (id int primary key, n int)')
    await db.query('insert into account values (1, 0)')
    const a = await session(db, 'a')
    const b = await session(db, 'b')
    await a.begin()
    await a.run('update account set n = 1')
    const waiting = b.start('update account set n = n + 1 returning n')
    await waiting.blocked(a)
    expect(waiting.done).toBe(false)
    await a.commit()
    expect(await waiting.promise).toEqual([{ n: 2 }])
    expect(waiting.done).toBe(true)
  })

  it('fails at once when the statement ends without having blocked', async () => {
    const a = await session(db, 'a')
    await expect(a.start('select 1').blocked()).rejects.toThrow('never blocked')
  })

  it('kills a backend in the middle of a statement', async () => {
    const a = await session(db, 'a')
    const b = await session(db, 'b')
    await a.run('select pg_advisory_lock(7)')
    const waiting = b.start('select pg_advisory_lock(7)')
    await waiting.blocked(a)
    await b.kill()
    await expect(waiting.promise).rejects.toThrow(/terminat/)
  })

  it('closes sessions when the test ends, also blocked ones', async () => {
    const found = await db.admin.query('select from pg_stat_activity where application_name = $1', ['b'])
    expect(found.rowCount).toBe(0)
  })
})

describe('eventually', () => {
  it('gives back the value once there is one, and the last error after the limit', async () => {
    let calls = 0
    expect(await eventually(() => ++calls > 2 && calls)).toBe(3)
    const never = eventually(() => expect(1).toBe(2), { timeoutMs: 30, what: 'a miracle' })
    await expect(never).rejects.toThrow('waited 30 ms for a miracle')
  })
})
