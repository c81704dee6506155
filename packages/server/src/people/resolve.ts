/**
 * From a verified token to a person. Known log-ins cost one indexed select; the first one of a
 * person, or one with a new address, goes through one transaction that cannot race.
 */
import type { Role, VerifiedClaims } from '../actor.ts'
import { type Platform, transaction } from '../platform.ts'
import { Problem } from '../problems.ts'
import { findLogin, isSettled } from './known-login.ts'
import { assertSubject, identityText } from './rules.ts'
import { signIn } from './sign-in.ts'

export interface ResolvedPerson {
  readonly personId: string
  readonly role: Role
  /** The identity used at this moment: `email:google:ada@example.org`, else `oauth_sub:google:…`. */
  readonly identity: string
}

export async function resolvePerson(platform: Platform, claims: VerifiedClaims): Promise<ResolvedPerson> {
  assertSubject(claims.subject)
  const known = await findLogin(platform.pool, claims)
  const login =
    known !== undefined && isSettled(known, claims)
      ? known
      : await transaction(platform, (tx) => signIn(platform, tx, claims))
  if (login.deleted) throw new Problem('HMD_FORBIDDEN', 'This person was removed.')
  return { personId: login.personId, role: login.role, identity: identityText(claims) }
}
