/**
 * Who is who, decided without a database: which addresses count, who may vouch for them, when a
 * log-in belongs to a person already known.
 */
import type { Role } from '../actor.ts'
import type { Issuer } from '../config.ts'
import { Problem } from '../problems.ts'

export const identityTypes = ['email', 'oauth_sub', 'ldap_dn'] as const
export type IdentityType = (typeof identityTypes)[number]

/** What a token said, after its signature was checked. */
export interface VerifiedClaims {
  readonly issuer: Issuer
  readonly subject: string
  readonly email?: string
  readonly emailVerified: boolean
  readonly name?: string
}

const addressMax = 254
const subjectMax = 255
const nameMax = 200

/** A to Z only: exactly what the column `key` does, so that both compare alike. */
export function folded(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** One @ with something on both sides, no spaces, no control characters; nothing else is judged. */
export function isAddress(text: string): boolean {
  return text.length <= addressMax && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(text)
}

/** The address a token may be known by: verified and well-formed, else none. */
export function addressOf({ email, emailVerified }: VerifiedClaims): string | undefined {
  if (!emailVerified || email === undefined) return undefined
  return isAddress(email) ? email : undefined
}

/** What the audit trail calls the log-in: the address where there is a verified one. */
export function identityText(claims: VerifiedClaims): string {
  const address = addressOf(claims)
  return address === undefined
    ? `oauth_sub:${claims.issuer.name}:${claims.subject}`
    : `email:${claims.issuer.name}:${folded(address)}`
}

export function assertSubject(subject: string): void {
  if (subject.length > 0 && subject.length <= subjectMax && !/\p{C}/u.test(subject)) return
  throw new Problem(
    'HMD_UNAUTHENTICATED',
    `The token's sub must be 1 to ${subjectMax} printable characters.`,
  )
}

/** May this issuer say whose address this is? Exactly the domain, and Latin letters only. */
export function isTrustedFor(issuer: Issuer | undefined, address: string): boolean {
  if (issuer === undefined || !/^[\x21-\x7e]+$/.test(address)) return false
  const domain = folded(address.slice(address.lastIndexOf('@') + 1))
  return issuer.trustedDomains.some((trusted) => folded(trusted) === domain)
}

/** Nobody becomes an operator or an administrator by an e-mail address. */
export function isPrivileged(role: Role): boolean {
  return role === 'operator' || role === 'admin'
}

/** A person who has the address of a new log-in. */
export interface Candidate {
  readonly personId: string
  readonly role: Role
  /** One of the issuers that vouch for the address there is trusted for it. */
  readonly trusted: boolean
  /** They already log in at this issuer, as somebody else. */
  readonly hasSubject: boolean
}

/**
 * The one person a new log-in belongs to, or undefined: then it is a new person, and whoever shares
 * the address becomes a proposal. Every doubt is a no.
 */
export function personToJoin(
  claims: VerifiedClaims,
  candidates: readonly Candidate[],
  { unlinkedBefore }: { readonly unlinkedBefore: boolean },
): Candidate | undefined {
  const address = addressOf(claims)
  const [only, ...others] = candidates
  if (address === undefined || only === undefined || others.length > 0) return undefined
  if (unlinkedBefore || !isTrustedFor(claims.issuer, address)) return undefined
  return only.trusted && !only.hasSubject && !isPrivileged(only.role) ? only : undefined
}

/** The name a new person starts with; an address that was not verified is nobody's name. */
export function firstName(claims: VerifiedClaims): string {
  const given = claims.name === undefined ? '' : printable(claims.name)
  const name = given || addressOf(claims) || `${claims.issuer.name} ${claims.subject}`
  return [...name].slice(0, nameMax).join('')
}

/** One line of text: no control characters, nothing that turns the direction of what follows. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Z}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
}
