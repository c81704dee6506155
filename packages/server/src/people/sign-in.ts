/**
 * A log-in seen for the first time, or with a new address. Locks on the log-in and on the address
 * (in one order) make any number of simultaneous ones a queue; the unique keys have the last word.
 */
import type { Platform, Tx } from '../platform.ts'
import { findLogin, isSettled, type KnownLogin } from './known-login.ts'
import { audit, type Recorder, record } from './record.ts'
import {
  addressOf,
  type Candidate,
  firstName,
  folded,
  identityText,
  isTrustedFor,
  personToJoin,
  type VerifiedClaims,
} from './rules.ts'

type Login = Pick<KnownLogin, 'personId' | 'role' | 'deleted'>

export async function signIn(platform: Platform, tx: Tx, claims: VerifiedClaims): Promise<Login> {
  await lockNames(tx, claims)
  const known = await findLogin(tx, claims)
  if (known === undefined) return firstSignIn(platform, tx, claims)
  if (known.deleted || isSettled(known, claims)) return known
  await lockPerson(tx, known.personId)
  const still = await findLogin(tx, claims)
  if (still?.personId !== known.personId) throw startAgain()
  await changeAddress(platform, tx, claims, still)
  return still
}

async function lockNames(tx: Tx, claims: VerifiedClaims): Promise<void> {
  const address = addressOf(claims)
  const names = [`sub:${claims.issuer.name}:${claims.subject}`]
  if (address !== undefined) names.push(`email:${folded(address)}`)
  await tx.query(
    `select pg_advisory_xact_lock(name) from
      (select distinct hashtextextended(n, 43) as name from unnest($1::text[]) n order by 1) s`,
    [names],
  )
}

async function lockPerson(tx: Tx, personId: string): Promise<void> {
  await tx.query('select from hermod.person where id = $1 for update', [personId])
}

/** Somebody merged or unlinked in between: the transaction is tried again from its start. */
function startAgain(): Error {
  return Object.assign(new Error('the person changed meanwhile'), { code: '40001' })
}

async function firstSignIn(platform: Platform, tx: Tx, claims: VerifiedClaims): Promise<Login> {
  const candidates = await candidatesFor(platform, tx, claims)
  const unlinkedBefore = await wasUnlinked(tx, claims)
  const found = personToJoin(claims, candidates, { unlinkedBefore })
  if (found === undefined) return newPerson(platform, tx, claims, candidates)
  await lockPerson(tx, found.personId)
  const now = personToJoin(claims, await candidatesFor(platform, tx, claims), { unlinkedBefore })
  if (now?.personId !== found.personId) throw startAgain()
  const by = loginOf(found.personId, claims)
  const subjectId = await addSubject(tx, found.personId, claims, { primary: false })
  await addAddress(tx, { personId: found.personId, subjectId, claims, by, primary: false })
  await touch(tx, found.personId)
  const changes = { type: 'oauth_sub', provider: claims.issuer.name, because: 'verified address' }
  await record(platform, tx, by, { personId: found.personId, action: 'linked', changes })
  return { personId: found.personId, role: found.role, deleted: false }
}

async function newPerson(
  platform: Platform,
  tx: Tx,
  claims: VerifiedClaims,
  candidates: readonly Candidate[],
): Promise<Login> {
  const role = platform.config.defaultRole
  const displayName = firstName(claims)
  const { rows } = await tx.query<{ id: string }>(
    'insert into hermod.person (display_name, role) values ($1, $2) returning id',
    [displayName, role],
  )
  const personId = (rows[0] as { id: string }).id
  const by = loginOf(personId, claims)
  const subjectId = await addSubject(tx, personId, claims, { primary: false })
  const added = await addAddress(tx, { personId, subjectId, claims, by, primary: true })
  if (!added) await makePrimary(tx, subjectId)
  const changes = { displayName, role, provider: claims.issuer.name }
  await record(platform, tx, by, { personId, action: 'created', changes })
  for (const { personId: other } of candidates) {
    const proposal = { person: personId, provider: claims.issuer.name, address: addressOf(claims) }
    await audit(tx, by, { personId: other, action: 'link_proposed', changes: proposal })
  }
  return { personId, role, deleted: false }
}

/** The address of this log-in follows what its issuer says now. */
async function changeAddress(
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

async function addSubject(
  tx: Tx,
  personId: string,
  { issuer, subject }: VerifiedClaims,
  { primary }: { readonly primary: boolean },
): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `insert into hermod.person_identity (person_id, type, provider, value, verified_at, is_primary)
     values ($1, 'oauth_sub', $2, $3, now(), $4) returning id`,
    [personId, issuer.name, subject, primary],
  )
  return (rows[0] as { id: string }).id
}

interface NewAddress {
  readonly personId: string
  readonly subjectId: string
  readonly claims: VerifiedClaims
  readonly by: Recorder
  readonly primary: boolean
}

/** True: the person has it now. An address of somebody else at this issuer is never taken away. */
async function addAddress(tx: Tx, given: NewAddress): Promise<boolean> {
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
 * Two accounts of one issuer carry the same verified address: it was given on, or is shared. The
 * first keeps it, but from now on it proves nothing, so nobody is linked by it.
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

async function makePrimary(tx: Tx, identityId: string): Promise<void> {
  await tx.query('update hermod.person_identity set is_primary = true where id = $1', [identityId])
}

async function touch(tx: Tx, personId: string): Promise<void> {
  await tx.query(
    'update hermod.person set version = version + 1, updated_at = now() where id = $1',
    [personId],
  )
}

/** Everybody who has this address, proven, at any issuer. */
async function candidatesFor(
  { config }: Platform,
  tx: Tx,
  claims: VerifiedClaims,
): Promise<Candidate[]> {
  const address = addressOf(claims)
  if (address === undefined) return []
  const { rows } = await tx.query(
    `select p.id, p.role, array_agg(i.provider) as providers,
            exists (select from hermod.person_identity s where s.person_id = p.id
              and s.type = 'oauth_sub' and s.provider = $2 and s.deleted_at is null) as has_subject
       from hermod.person_identity i
       join hermod.person p on p.id = i.person_id and p.deleted_at is null
      where i.type = 'email' and i.key = $1 and i.deleted_at is null and i.verified_at is not null
      group by p.id order by p.id limit 10`,
    [folded(address), claims.issuer.name],
  )
  return rows.map(({ id, role, providers, has_subject: hasSubject }) => {
    const vouching = config.issuers.filter(({ name }) => providers.includes(name))
    const trusted = vouching.some((issuer) => isTrustedFor(issuer, address))
    return { personId: id, role, trusted, hasSubject }
  })
}

/** An administrator took this log-in from somebody: no address gives it back. */
async function wasUnlinked(tx: Tx, { issuer, subject }: VerifiedClaims): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from hermod.person_identity
      where type = 'oauth_sub' and provider = $1 and key = $2 and deleted_at is not null limit 1`,
    [issuer.name, subject],
  )
  return (rowCount ?? 0) > 0
}

function loginOf(personId: string, claims: VerifiedClaims): Recorder {
  return { personId, identity: identityText(claims), endpoint: 'sign-in' }
}
