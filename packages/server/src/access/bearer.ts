/** Reads the bearer token of a request. A malformed header is refused before the token is looked at. */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../problems.ts'

/** The largest tokens of real issuers (many groups) stay below this; Node's own bound is 16 kB. */
const tokenBytesMax = 8_192

export function unauthenticated(detail: string, cause?: unknown): Problem {
  return new Problem('HMD_UNAUTHENTICATED', detail, {
    headers: { 'www-authenticate': 'Bearer realm="hermod"' },
    ...(cause !== undefined && { cause }),
  })
}

export function bearerOf({ raw }: Pick<FastifyRequest, 'raw'>): string {
  // Node keeps only the first of two Authorization headers; a proxy may have looked at the other.
  const given = raw.rawHeaders.filter(
    (_, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === 'authorization',
  )
  const [header] = given
  if (header === undefined) throw unauthenticated('Send a token: Authorization: Bearer <token>.')
  if (given.length > 1) throw unauthenticated('Send one Authorization header, not several.')
  if (header.length > tokenBytesMax) {
    throw unauthenticated(`The token is longer than ${tokenBytesMax} bytes.`)
  }
  const [, token] = /^bearer +([\w.~+/-]+=*) *$/i.exec(header) ?? []
  if (token === undefined) throw unauthenticated('Authorization must be: Bearer <token>.')
  return token
}
