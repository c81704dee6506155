/**
 * Checks tokens of the configured OIDC issuers after RFC 8725: the issuer is chosen by the exact
 * `iss`, and its keys, algorithms and audience come from the configuration, never from the token.
 */
import { createRemoteJWKSet, decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { Issuer } from '../config.ts'
import { Problem } from '../problems.ts'
import { unauthenticated } from './bearer.ts'

/** An issuer and where its public keys come from. */
export interface TrustedIssuer {
  readonly issuer: Issuer
  readonly keys: JWTVerifyGetKey
}

export interface Verified {
  readonly issuer: Issuer
  readonly claims: JWTPayload & { readonly sub: string; readonly exp: number }
}

export type VerifyJwt = (token: string) => Promise<Verified>

const skewSeconds = 60
const subjectMax = 255
/** A token without `typ` is a JWT too (Dex sends none); one that says it is something else is not. */
const types = new Set(['jwt', 'at+jwt', 'application/at+jwt'])

/** Keys are fetched when first needed, kept, and fetched again at most twice a minute. */
const fetching = { timeoutDuration: 5_000, cooldownDuration: 30_000, cacheMaxAge: 600_000 }

export function trusted(issuer: Issuer): TrustedIssuer {
  return { issuer, keys: createRemoteJWKSet(new URL(issuer.jwksUri), fetching) }
}

export function jwtVerifier(issuers: readonly TrustedIssuer[], clock: () => Date): VerifyJwt {
  const known = new Map(issuers.map((each) => [each.issuer.issuer, each]))
  return async (token) => {
    const found = known.get(issuerOf(token))
    if (found === undefined) throw unauthenticated('No configured issuer gave out this token.')
    const { issuer, keys } = found
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        algorithms: [...issuer.algorithms],
        issuer: issuer.issuer,
        audience: issuer.audience,
        clockTolerance: skewSeconds,
        requiredClaims: ['exp', 'sub'],
        currentDate: clock(),
      })
      return { issuer, claims: claimsOf(payload, protectedHeader.typ) }
    } catch (error) {
      throw refusal(error, issuer)
    }
  }
}

function issuerOf(token: string): string {
  try {
    return String(decodeJwt(token).iss)
  } catch (error) {
    throw unauthenticated('The token is neither an API token nor a JWT.', error)
  }
}

function claimsOf(payload: JWTPayload, typ: unknown): Verified['claims'] {
  if (typ !== undefined && !types.has(String(typ).toLowerCase())) {
    throw unauthenticated('The token is of a type that does not grant access.')
  }
  const { sub, exp } = payload
  if (typeof sub !== 'string' || sub === '' || sub.length > subjectMax) {
    throw unauthenticated(`The token must name its subject with 1 to ${subjectMax} characters.`)
  }
  return { ...payload, sub, exp: exp as number }
}

/** Tells the caller what they can fix, but not which check of the signature failed. */
function refusal(error: unknown, { name }: Issuer): Problem {
  if (error instanceof Problem) return error
  if (error instanceof errors.JWTExpired) return unauthenticated('The token has expired.', error)
  if (error instanceof errors.JWTClaimValidationFailed) {
    return unauthenticated(`The token's ${error.claim} is not accepted here.`, error)
  }
  if (isOurs(error)) {
    return new Problem('HMD_UNAVAILABLE', `The keys of the issuer ${name} cannot be fetched.`, {
      headers: { 'retry-after': '5' },
      cause: error,
    })
  }
  return unauthenticated('The token is not valid.', error)
}

/** The issuer did not answer with a key set: this is not the token's fault. */
function isOurs(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return true
  return ['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC'].includes(error.code)
}
