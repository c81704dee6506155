/**
 * The address that comes with a log-in: added, adopted, followed when its issuer carries another one,
 * and never taken from anybody.
 */
import type { VerifiedClaims } from '../actor.ts'
import type { Platform, Tx } from '../platform.ts'
import type { KnownLogin } from './known-login.ts'
import { audit, type Recorder, record } from './record.ts'
import { addressOf, folded, identityText, isTrustedFor } from './rules.ts'
import { makePrimary, touch } from './write.ts'

/** The address of this log-in follows what its issuer says now. */
export async function changeAddress(
  platform: Platform,
  tx: Tx,
  claims: VerifiedClaims,
  { personId, subjectId, email }: KnownLogin,
): Promise<void> {
  const by = loginOf(personId, claims)
  const { rows } = await tx.query<{ id: string; is_primary: boolean }>(
    'select id, is_primary from hermod.person_identity where subject_id = $1 and deleted_at is null',
    [subjectId],
  )
  const primary = rows[0]?.is_primary ?? false
  await tx.query(
    `update hermod.person_identity set deleted_at = now(), updated_at = now(), is_primary = false
      where subject_id = $1 and deleted_at is null`,
    [subjectId],
  )
  const added = await addAddress(tx, { personId, subjectId, claims, by, primary })
  if (primary && !added) await makePrimary(tx, subjectId)
  await touch(tx, personId)
  const changes = { from: email, to: added ? addressOf(claims) : null }
  await record(platform, tx, by, { personId, action: 'address_changed', changes })
}

interface NewAddress {
  readonly personId: string
  readonly subjectId: string
  readonly claims: VerifiedClaims
  readonly by: Recorder
  readonly primary: boolean
}

/** True: the person has it now. An address of somebody else at this issuer is never taken away. */
export async function addAddress(tx: Tx, given: NewAddress): Promise<boolean> {
  const { personId, subjectId, claims, primary } = given
  const address = addressOf(claims)
  if (address === undefined) return false
  const { rowCount } = await tx.query(
    `insert into hermod.person_identity
       (person_id, type, provider, value, subject_id, verified_at, is_primary)
     values ($1, 'email', $2, $3, $4, now(), $5)
     on conflict (type, provider, key) where deleted_at is null do nothing`,
    [personId, claims.issuer.name, address, subjectId, primary],
  )
  if (rowCount === 1) return true
  const adopted = await tx.query(
    `update hermod.person_identity
        set subject_id = $3, verified_at = coalesce(verified_at, now()), updated_at = now(),
            is_primary = is_primary or $5
      where type = 'email' and provider = $1 and key = $2 and deleted_at is null
        and person_id = $4 and subject_id is null`,
    [claims.issuer.name, folded(address), subjectId, personId, primary],
  )
  if (adopted.rowCount === 1) return true
  await contest(tx, given, address)
  return false
}

/**
 * Two accounts of one issuer have the same verified address: it was reassigned or is shared. The
 * first account keeps it, but from now on nobody is linked by it.
 */
async function contest(tx: Tx, { personId, claims, by }: NewAddress, address: string) {
  const { rows } = await tx.query<{ person_id: string }>(
    `update hermod.person_identity i set verified_at = null, updated_at = now()
      where i.type = 'email' and i.key = $1 and i.deleted_at is null and i.person_id <> $2
        and i.verified_at is not null and (i.provider = $3 or $4)
        and exists (select from hermod.person_identity h
          where h.type = 'email' and h.provider = $3 and h.key = $1 and h.deleted_at is null
            and h.person_id <> $2 and h.subject_id is not null)
      returning i.person_id`,
    [folded(address), personId, claims.issuer.name, isTrustedFor(claims.issuer, address)],
  )
  const changes = { person: personId, provider: claims.issuer.name, address }
  for (const other of new Set(rows.map(({ person_id }) => person_id))) {
    await touch(tx, other)
    await audit(tx, by, { personId: other, action: 'address_contested', changes })
  }
}

export function loginOf(personId: string, claims: VerifiedClaims): Recorder {
  return { personId, identity: identityText(claims), endpoint: 'sign-in' }
}
