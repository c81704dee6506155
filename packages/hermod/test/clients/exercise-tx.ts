// What every client adapter must do with a real library on a real database: carry text and nulls
// unchanged, share the fate of the caller's transaction, and let PostgreSQL's errors through.

import { beforeEach, expect, it } from 'vitest'
import type { TestDatabase } from '../../../../test/support/database.ts'
import { asTx } from '../../src/clients/client.ts'
import { arrayLiteral } from '../../src/flow/emit.ts'

/** Runs `fn` in the library's own transaction helper: commits, or rolls back when it throws. */
export type Transaction = (fn: (tx: unknown) => Promise<void>) => Promise<unknown>

/** Texts that some library, somewhere, takes for a date, a number, JSON or a placeholder. */
const texts = ['2026-11-01T00:00:00Z', '007', 'true', '', '?', '{"a":"$1 \\ \' é €","b":[1,null]}']

const INSERT = `insert into note select value from unnest($1::text::text[]) as value
  returning text as id, $2::text as nothing`

export function exerciseTx(db: TestDatabase, transaction: Transaction): void {
  const stored = async () => (await db.query('select text from note')).map((row) => row.text)

  beforeEach(async () => {
    await db.query('create table if not exists note (text text)')
    await db.query('truncate note')
  })

  it('carries texts and nulls unchanged, both ways', async () => {
    await transaction(async (client) => {
      const tx = asTx(client)
      expect(tx.inTransaction).toBe(true)
      const rows = await tx.query(INSERT, [arrayLiteral([...texts, null]), null])
      expect(rows).toEqual([...texts, null].map((id) => ({ id, nothing: null })))
    })
    expect(await stored()).toEqual([...texts, null])
  })

  it('is invisible to others until the commit', async () => {
    await transaction(async (client) => {
      await asTx(client).query(INSERT, [arrayLiteral(['a']), null])
      expect(await stored()).toEqual([])
    })
    expect(await stored()).toEqual(['a'])
  })

  it('is gone after a rollback', async () => {
    const failing = transaction(async (client) => {
      await asTx(client).query(INSERT, [arrayLiteral(['a']), null])
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect(await stored()).toEqual([])
  })

  it('answers statements without rows with none', async () => {
    await transaction(async (client) => {
      expect(await asTx(client).query('delete from note', [])).toHaveLength(0)
    })
  })

  it('takes ten thousand values in one statement', async () => {
    const many = Array.from({ length: 10_000 }, (_, n) => `${n}`.padStart(40, '"\\'))
    await transaction(async (client) => {
      expect(await asTx(client).query(INSERT, [arrayLiteral(many), null])).toHaveLength(10_000)
    })
    expect(await stored()).toEqual(many)
  })

  it('lets the errors of PostgreSQL through, those of an aborted transaction too', async () => {
    const codes: unknown[] = []
    const note = (error: { code?: string }) => void codes.push(error.code)
    const failing = transaction(async (client) => {
      await asTx(client).query('select (1 / $1::text::int)::text as id', ['0']).catch(note)
      await asTx(client).query('select $1::text as id', ['a']).catch(note)
      throw new Error('as expected')
    })
    await expect(failing).rejects.toThrow()
    expect(codes).toEqual(['22012', '25P02'])
  })
}
