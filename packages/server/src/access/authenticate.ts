/**
 * From the Authorization header to a principal: OIDC tokens of configured issuers, and API tokens.
 * An answer is kept for three seconds, so a revoked token or a changed role counts within that time.
 */
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Principal, Role, VerifiedClaims } from '../actor.ts'
import { permissionsOf } from '../permissions.ts'
import type { Platform } from '../platform.ts'
import { principalOfToken } from './api-token.ts'
import { bearerOf } from './bearer.ts'
import { recent } from './recent.ts'
import { higherRole, roleFromClaims } from './roles.ts'
import { looksLikeApiToken } from './rules.ts'
import { jwtVerifier, type TrustedIssuer, trusted, type Verified } from './verify-jwt.ts'

export type Authenticate = (request: FastifyRequest) => Promise<Principal>

interface FoundPerson {
  readonly personId: string
  readonly role: Role
  readonly identity: string
}

/** Finds the person of a log-in, or makes one. The room `people` does it. */
export type FindPerson = (platform: Platform, claims: VerifiedClaims) => Promise<FoundPerson>

const keptMs = 3_000
const keptMax = 10_000
/** Clocks may differ by this much. */
const skewMs = 60_000

/** `also`: issuers that are no part of the configuration, such as the development sign-in. */
export function authenticator(
  platform: Platform,
  findPerson: FindPerson,
  also: readonly TrustedIssuer[] = [],
): Authenticate {
  const issuers = [...platform.config.issuers.map(trusted), ...also]
  const verify = jwtVerifier(issuers, platform.clock)
  const known = recent<Principal>(platform.clock, keptMs, keptMax)
  return async (request) => {
    const token = bearerOf(request)
    return known.get(createHash('sha256').update(token).digest('base64url'), async () =>
      looksLikeApiToken(token)
        ? principalOfToken(platform, token)
        : principalOfClaims(platform, findPerson, await verify(token)),
    )
  }
}

async function principalOfClaims(
  platform: Platform,
  findPerson: FindPerson,
  { issuer, claims }: Verified,
): Promise<Principal> {
  const person = await findPerson(platform, {
    issuer,
    subject: claims.sub,
    ...text('email', claims.email),
    ...text('name', claims.name),
    // Some issuers write the boolean as text.
    emailVerified: claims.email_verified === true || claims.email_verified === 'true',
  })
  const role = higherRole(person.role, roleFromClaims(issuer, claims))
  return {
    personId: person.personId,
    identity: person.identity,
    role,
    permissions: permissionsOf(role),
    ...signedIn(claims, platform.clock()),
  }
}

/**
 * If the issuer does not tell the time of the sign-in, the time of the token is used. A time that is none, or that is still to come,
 * proves nothing.
 */
function signedIn({ auth_time, iat }: Verified['claims'], now: Date): { signedInAt?: Date } {
  const seconds = typeof auth_time === 'number' ? auth_time : iat
  if (seconds === undefined || !(seconds >= 0 && seconds * 1000 <= now.getTime() + skewMs)) return {}
  return { signedInAt: new Date(seconds * 1000) }
}

function text<K extends string>(key: K, claim: unknown): { [key in K]?: string } {
  const value = typeof claim === 'string' ? claim.trim() : ''
  return (value === '' ? {} : { [key]: value }) as { [key in K]?: string }
}
