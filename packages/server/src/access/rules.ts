/** API tokens as text, and what one may hold: pure. */
import { createHash, randomBytes } from 'node:crypto'
import { type Permission, permissions, permissionsOf } from '../permissions.ts'
import { invalid, Problem } from '../problems.ts'

/** `hmd_<prefix>_<secret>`: the prefix is what people recognise, the secret has 256 bits. */
const shape = /^hmd_([a-z0-9]{8})_([\w-]{43})$/

/** What no token may do: create further tokens. */
const neverScoped: readonly Permission[] = ['token:own', 'token:admin']
export const scopable = permissions.filter((permission) => !neverScoped.includes(permission))

/** More than an editor may do: a token with it is worth a stolen session. */
export function isPrivileged(scope: Permission): boolean {
  return !permissionsOf('editor').has(scope)
}

export interface NewSecret {
  readonly prefix: string
  readonly secret: string
  readonly hash: Buffer
}

export function looksLikeApiToken(token: string): boolean {
  return token.startsWith('hmd_')
}

export function isApiToken(token: string): boolean {
  return shape.test(token)
}

export function newSecret(): NewSecret {
  const prefix = randomBytes(4).toString('hex')
  const secret = `hmd_${prefix}_${randomBytes(32).toString('base64url')}`
  return { prefix, secret, hash: hashOf(secret) }
}

/** 256 random bits need no slow hash; the index on the hash leaks nothing about the token. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * A token outlives the sign-in it was made in, so it holds at most what the person's role in the
 * database allows: a role lent by the issuer ends with the issuer's token.
 */
export function assertScopes(
  scopes: readonly Permission[],
  creator: ReadonlySet<Permission>,
  lasting: ReadonlySet<Permission>,
): void {
  if (new Set(scopes).size < scopes.length) throw invalid('/scopes', 'names a scope twice')
  const missing = scopes.filter((scope) => !creator.has(scope))
  if (missing.length > 0) {
    throw new Problem('HMD_FORBIDDEN', `You cannot give away what you lack: ${missing.join(', ')}.`)
  }
  const lent = scopes.filter((scope) => !lasting.has(scope))
  if (lent.length > 0) {
    throw new Problem(
      'HMD_FORBIDDEN',
      `Your issuer lends you ${lent.join(', ')} for the time of a sign-in; a token needs the role in Hermod itself. Ask an admin to set it.`,
    )
  }
}

/** In the future, and within a year: a token that never ends is forgotten, not revoked. */
export function expiryOf(given: string | undefined, now: Date): Date {
  const latest = new Date(now.getTime() + 366 * 86_400_000)
  if (given === undefined) return new Date(now.getTime() + 90 * 86_400_000)
  const expiresAt = new Date(given)
  if (Number.isNaN(expiresAt.getTime())) throw invalid('/expiresAt', 'is not a time')
  if (expiresAt <= now) throw invalid('/expiresAt', 'must be in the future')
  if (expiresAt > latest) {
    throw invalid('/expiresAt', `must be within a year: ${latest.toISOString()} at the latest`)
  }
  return expiresAt
}
