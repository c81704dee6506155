// The adapter for postgres.js against the real library, with the options that change its answers.

import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { asTx } from '../../src/clients/client.ts'
import { exerciseTx } from './exercise-tx.ts'

const db = useDatabase({ empty: true })
const outside = expect.objectContaining({ code: 'HMD_EMIT_OUTSIDE_TRANSACTION' })

describe.each([
  { title: 'as it comes', options: {} },
  { title: 'without prepared statements', options: { prepare: false } },
  { title: 'with renamed columns', options: { transform: postgres.pascal } },
])('postgres.js $title', ({ options }) => {
  let sql: postgres.Sql
  beforeAll(() => {
    sql = postgres(db.url, { max: 2, onnotice: () => {}, ...options })
  })
  afterAll(() => sql.end())

  describe('begin', () => exerciseTx(db, (fn) => sql.begin(fn)))
  describe('savepoint', () => exerciseTx(db, (fn) => sql.begin((tx) => tx.savepoint(fn))))

  it('refuses the top-level sql', () => {
    expect(() => asTx(sql)).toThrow(outside)
  })

  it('cannot tell on a reserved connection', async () => {
    const reserved = await sql.reserve()
    expect(asTx(reserved).inTransaction).toBe('unknown')
    reserved.release()
  })
})
