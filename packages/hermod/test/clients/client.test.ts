// What `asTx` says to things that are no transaction of any library it knows.

import { describe, expect, it } from 'vitest'
import { asTx, type Tx } from '../../src/clients/client.ts'

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) })

describe('asTx', () => {
  it.each([
    ['nothing', undefined, /but got undefined$/],
    ['null', null, /but got null$/],
    ['a string', 'postgres://localhost', /but got string$/],
    ['a plain object', {}, /but got an object \(Object\)$/],
    ['an object without prototype', Object.create(null), /but got an object$/],
    ['a promise', Promise.resolve(), /is an await missing\?/],
    ['an object with a query of its own', { query: () => [] }, /but got an object \(Object\)$/],
  ])('refuses %s', (_, client, message) => {
    expect(() => asTx(client)).toThrow(refusal('HMD_CLIENT_UNKNOWN', message))
  })

  it.each([true, 'unknown'] as const)('takes a wrapped transaction as it is (%s)', (inTransaction) => {
    const own: Tx = { query: async () => [], inTransaction }
    expect(asTx(own)).toBe(own)
  })

  it('refuses a wrapped client that says it is outside a transaction', () => {
    const own: Tx = { query: async () => [], inTransaction: false }
    expect(() => asTx(own)).toThrow(refusal('HMD_EMIT_OUTSIDE_TRANSACTION', /outside a transaction/))
  })
})
