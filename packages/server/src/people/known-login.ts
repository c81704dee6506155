/** What the database knows about a log-in, in one row, and whether a token changes any of it. */
import type { Role, VerifiedClaims } from '../actor.ts'
import type { Asked } from '../platform.ts'
import { addressOf, folded } from './rules.ts'

/** What the database knows about a log-in. */
export interface KnownLogin {
  readonly subjectId: string
  readonly personId: string
  readonly role: Role
  readonly deleted: boolean
  /** The address this log-in is known by. */
  readonly email: string | null
  /** The person who has the token's current address at this issuer. */
  readonly holder: string | null
  readonly holderSubject: string | null
  readonly holderVerified: boolean
}

/** One row by two unique indexes; a merged person's log-ins already belong to the survivor. */
export async function findLogin(db: Asked, claims: VerifiedClaims): Promise<KnownLogin | undefined> {
  const address = addressOf(claims)
  const { rows } = await db.query<KnownLogin>(
    `select i.id as "subjectId", p.id as "personId", p.role, p.deleted_at is not null as deleted,
            e.key as email, h.person_id as holder, h.subject_id as "holderSubject",
            h.verified_at is not null as "holderVerified"
       from hermod.person_identity i
       join hermod.person p on p.id = i.person_id
       left join hermod.person_identity e on e.subject_id = i.id and e.deleted_at is null
       left join hermod.person_identity h
         on h.type = 'email' and h.provider = $1 and h.key = $3 and h.deleted_at is null
      where i.type = 'oauth_sub' and i.provider = $1 and i.key = $2 and i.deleted_at is null`,
    [claims.issuer.name, claims.subject, address === undefined ? null : folded(address)],
  )
  return rows[0]
}

/** Nothing to write: the address is the known one, there is none, or it is somebody else's. */
export function isSettled(known: KnownLogin, claims: VerifiedClaims): boolean {
  const address = addressOf(claims)
  if (address === undefined || known.email === folded(address)) return true
  if (known.email !== null || known.holder === null) return false
  if (known.holder === known.personId) return known.holderSubject !== null
  return known.holderSubject === null || !known.holderVerified
}
