/**
 * A log-in seen for the first time, or with a new address. Locks on the log-in and on the address
 * (in a fixed order) make simultaneous log-ins wait for each other; unique keys decide in the end.
 */
import type { VerifiedClaims } from '../actor.ts'
import type { Platform, Tx } from '../platform.ts'
import { addAddress, changeAddress, loginOf } from './addresses.ts'
import { findLogin, isSettled, type KnownLogin } from './known-login.ts'
import { audit, record } from './record.ts'
import { addressOf, type Candidate, firstName, folded, isTrustedFor, personToJoin } from './rules.ts'
import { lockPerson, makePrimary, touch } from './write.ts'

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

/** Somebody was merged or unlinked in between: the transaction is tried again. */
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

/** Everybody who has this address, proven, at any issuer. */
async function candidatesFor({ config }: Platform, tx: Tx, claims: VerifiedClaims): Promise<Candidate[]> {
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

/** An administrator unlinked this log-in: a matching address does not link it again. */
async function wasUnlinked(tx: Tx, { issuer, subject }: VerifiedClaims): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from hermod.person_identity
      where type = 'oauth_sub' and provider = $1 and key = $2 and deleted_at is not null limit 1`,
    [issuer.name, subject],
  )
  return (rowCount ?? 0) > 0
}
