// The Authorization header before anybody looks into the token.
import { describe, expect, it } from 'vitest'
import { bearerOf } from '../../src/access/bearer.ts'

const asked = (...values: string[]) =>
  ({ raw: { rawHeaders: values.flatMap((value) => ['Authorization', value]) } }) as never

describe('the one bearer token of a request', () => {
  it('is taken as it is, whatever the case of the scheme', () => {
    expect(bearerOf(asked('Bearer a.b-c_d.e'))).toBe('a.b-c_d.e')
    expect(bearerOf(asked('bearer   hmd_1234abcd_x=='))).toBe('hmd_1234abcd_x==')
  })

  it.each([
    ['no header', []],
    ['two headers', ['Bearer a', 'Bearer b']],
    ['the same header twice', ['Bearer a', 'Bearer a']],
    ['two tokens in one header', ['Bearer a, Bearer b']],
    ['another scheme', ['Basic YTpi']],
    ['no scheme', ['a.b.c']],
    ['no token', ['Bearer ']],
    ['a space inside', ['Bearer a b']],
    ['a character that no token has', ['Bearer a\u0000b']],
    ['a token of 8,193 bytes', [`Bearer ${'a'.repeat(8_193)}`]],
    ['a token of 1 MB', [`Bearer ${'a'.repeat(1_048_576)}`]],
  ])('%s is 401', (_what, values) => {
    expect(() => bearerOf(asked(...values))).toThrow(
      expect.objectContaining({ code: 'HMD_UNAUTHENTICATED', status: 401 }),
    )
  })

  it('the longest token that is read has 8,185 bytes', () => {
    const token = 'a'.repeat(8_192 - 'Bearer '.length)
    expect(bearerOf(asked(`Bearer ${token}`))).toBe(token)
  })
})
