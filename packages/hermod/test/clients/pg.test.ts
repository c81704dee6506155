// The adapter for pg against the real library, with and without pipelining.

import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { asTx } from '../../src/clients/client.ts'
import { exerciseTx } from './exercise-tx.ts'

const db = useDatabase({ empty: true })
const outside = expect.objectContaining({ code: 'HMD_EMIT_OUTSIDE_TRANSACTION' })

describe.each([{ pipeline: false }, { pipeline: true }])('pg %o', (options) => {
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: db.url, ...options } as pg.ClientConfig)
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }

  exerciseTx(db, async (fn) => {
    const client = await connect()
    await client.query('begin')
    await fn(client).then(
      () => client.query('commit'),
      async (error) => {
        await client.query('rollback')
        throw error
      },
    )
  })

  it('refuses a client before BEGIN and after COMMIT', async () => {
    const client = await connect()
    expect(() => asTx(client)).toThrow(outside)
    await client.query('begin')
    expect(asTx(client).inTransaction).toBe(true)
    await client.query('commit')
    expect(() => asTx(client)).toThrow(outside)
  })

  it('trusts a client whose BEGIN is still on its way', async () => {
    const client = await connect()
    const begun = client.query('begin')
    expect(asTx(client).inTransaction).toBe('unknown')
    await begun
    expect(asTx(client).inTransaction).toBe(true)
  })
})

it('refuses a pool, whose next query may run on another connection', () => {
  expect(() => asTx(db.pool)).toThrow(outside)
})

it('takes a client that cannot tell (pg before 8.21)', async () => {
  const client = await db.pool.connect()
  onTestFinished(() => client.release())
  const old = Object.create(client, { getTransactionStatus: { value: undefined } })
  expect(asTx(old).inTransaction).toBe('unknown')
})
