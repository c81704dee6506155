/**
 * Who is who, decided without a database: which addresses count, who may vouch for them, when a
 * log-in belongs to a person already known.
 */
import type { Role, VerifiedClaims } from '../actor.ts'
import type { Issuer } from '../config.ts'
import { Problem } from '../problems.ts'

export const identityTypes = ['email', 'oauth_sub', 'ldap_dn'] as const
export type IdentityType = (typeof identityTypes)[number]

const addressMax = 254
const subjectMax = 255
const nameMax = 200

/** A to Z only: exactly what the column `key` does, so that both compare alike. */
export function folded(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** One @ with something on both sides, no spaces, no control characters; nothing else is checked. */
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
  throw new Problem('HMD_UNAUTHENTICATED', `The token's sub must be 1 to ${subjectMax} printable characters.`)
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
 * the address becomes a proposal. In doubt the answer is no.
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

/** The name a new person starts with. Everybody sees names, so of an address only what is before the @. */
export function firstName(claims: VerifiedClaims): string {
  const given = claims.name === undefined ? '' : printable(claims.name)
  const name = given || addressOf(claims)?.split('@')[0] || `${claims.issuer.name} ${claims.subject}`
  return [...name].slice(0, nameMax).join('')
}

/** One line of text: no control characters, nothing that turns the direction of what follows. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Z}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
}

/** What an administrator links. */
export interface NewIdentity {
  readonly type: IdentityType
  readonly provider: string
  readonly value: string
  /** The administrator vouches for it, as an issuer would. */
  readonly verified: boolean
}

export function assertIdentity({ type, provider, value }: NewIdentity, issuers: readonly Issuer[]): void {
  const errors = [
    ...(type !== 'ldap_dn' && !issuers.some(({ name }) => name === provider)
      ? [{ pointer: '/provider', detail: `must be one of ${namesOf(issuers)}` }]
      : []),
    ...(isValueOf(type, value) ? [] : [{ pointer: '/value', detail: valueRules[type] }]),
  ]
  if (errors.length === 0) return
  const says = errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
  throw new Problem('HMD_RULE_BROKEN', says, { errors })
}

function namesOf(issuers: readonly Issuer[]): string {
  return issuers.map(({ name }) => name).join(', ') || 'the configured issuers (there is none)'
}

const valueRules: Readonly<Record<IdentityType, string>> = {
  email: `must be an e-mail address of at most ${addressMax} characters`,
  oauth_sub: `must be a subject of 1 to ${subjectMax} printable characters`,
  ldap_dn: 'must be a distinguished name such as uid=ada,dc=example,dc=org, at most 512 characters',
}

function isValueOf(type: IdentityType, value: string): boolean {
  if (type === 'email') return isAddress(value)
  if (/\p{C}/u.test(value)) return false
  if (type === 'oauth_sub') return value.length > 0 && value.length <= subjectMax
  return value.length <= 512 && /^[^=,]+=[^,]+(,[^=,]+=[^,]+)*$/.test(value)
}

/** A name is one line that shows something. */
export function assertName(name: string): void {
  if (name.length > 0 && [...name].length <= nameMax && printable(name) === name) return
  const detail = `must be 1 to ${nameMax} characters on one line, without spaces around them`
  throw new Problem('HMD_RULE_BROKEN', `/displayName ${detail}`, {
    errors: [{ pointer: '/displayName', detail }],
  })
}

/** The last identity cannot be removed; nor an address of a linked log-in, which would come back. */
export function assertUnlinkable(
  { subjectId }: { readonly subjectId: string | null },
  staying: readonly { readonly id: string }[],
): void {
  if (subjectId !== null && staying.some(({ id }) => id === subjectId)) {
    const says = `This address comes with identity ${subjectId}: unlink that one.`
    throw new Problem('HMD_CONFLICT', says, { facts: { identityId: subjectId } })
  }
  if (staying.length > 0) return
  const says = 'It is the last identity of this person: link another one first, or merge the person.'
  throw new Problem('HMD_CONFLICT', says)
}
