/**
 * What an administrator does to one person: create, rename, give a role, link, unlink, choose the
 * primary identity. Each locks the person, decides, writes, and leaves an audit row and an event.
 */
import type { Actor, Role } from '../actor.ts'
import type { Platform, Tx } from '../platform.ts'
import { notFound, Problem } from '../problems.ts'
import { assertRecent } from '../recent-sign-in.ts'
import { assertVersion } from '../version-tags.ts'
import { type Identity, identitiesOf } from './queries.ts'
import { record } from './record.ts'
import { refreshDocuments } from './references/refresh.ts'
import { assertIdentity, assertName, assertUnlinkable, type NewIdentity } from './rules.ts'
import { lockLiving, makePrimary, touch } from './write.ts'

/** The version the caller saw; undefined = whichever there is. */
type Seen = string | undefined

export interface NewPerson {
  readonly displayName: string
  readonly role?: Role | undefined
  readonly identity?: NewIdentity | undefined
}

export async function createPerson(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { displayName, role = platform.config.defaultRole, identity }: NewPerson,
): Promise<string> {
  assertName(displayName)
  if (role !== platform.config.defaultRole || identity !== undefined) {
    assertRecent(actor, platform.clock())
  }
  const { rows } = await tx.query<{ id: string }>(
    'insert into hermod.person (display_name, role) values ($1, $2) returning id',
    [displayName, role],
  )
  const personId = (rows[0] as { id: string }).id
  await record(platform, tx, actor, {
    personId,
    action: 'created',
    changes: { displayName, role },
  })
  if (identity !== undefined) await linkIdentity(platform, tx, actor, personId, identity)
  return personId
}

export interface PersonChange {
  readonly displayName?: string | undefined
  readonly role?: Role | undefined
}

/** The version after it; nothing changed, nothing written. */
export async function updatePerson(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { personId, seen, change }: { personId: string; seen: Seen; change: PersonChange },
): Promise<string> {
  const [person] = await lockLiving(tx, [personId])
  if (person === undefined) throw notFound('person')
  assertVersion(seen, person.version)
  const { displayName = person.displayName, role = person.role } = change
  assertName(displayName)
  if (role !== person.role) assertRecent(actor, platform.clock())
  const changes = {
    ...(displayName !== person.displayName && {
      displayName: { from: person.displayName, to: displayName },
    }),
    ...(role !== person.role && { role: { from: person.role, to: role } }),
  }
  if (Object.keys(changes).length === 0) return person.version
  await tx.query('update hermod.person set display_name = $2, role = $3 where id = $1', [
    ...[personId, displayName, role],
  ])
  const version = await touch(tx, personId)
  await record(platform, tx, actor, { personId, action: 'updated', changes })
  if (displayName !== person.displayName) {
    await refreshDocuments(platform, tx, actor, [personId])
  }
  return version
}

/** The first identity of a person is the primary one. */
export async function linkIdentity(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  personId: string,
  wanted: NewIdentity,
): Promise<string> {
  assertIdentity(wanted, platform.config.issuers)
  assertRecent(actor, platform.clock())
  await lockLiving(tx, [personId])
  const { type, provider, value, verified } = wanted
  const { rows } = await tx.query<{ id: string }>(
    `insert into hermod.person_identity (person_id, type, provider, value, verified_at, is_primary)
     values ($1, $2, $3, $4, case when $5 then now() end,
       not exists (select from hermod.person_identity where person_id = $1 and deleted_at is null))
     on conflict (type, provider, key) where deleted_at is null do nothing returning id`,
    [personId, type, provider, value, verified],
  )
  const [added] = rows
  if (added === undefined) throw await taken(tx, wanted)
  await touch(tx, personId)
  const changes = { identity: added.id, type, provider, value, verified }
  await record(platform, tx, actor, { personId, action: 'linked', changes })
  return added.id
}

async function taken(tx: Tx, { type, provider, value }: NewIdentity): Promise<Problem> {
  const { rows } = await tx.query<{ person_id: string }>(
    `select person_id from hermod.person_identity
      where type = $1 and provider = $2 and deleted_at is null
        and key = case when $1 = 'oauth_sub' then $3 else lower($3::text collate "C") end`,
    [type, provider, value],
  )
  const personId = rows[0]?.person_id
  const says = `This identity belongs to person ${personId}: unlink it there, or merge the two people.`
  return new Problem('HMD_CONFLICT', says, { facts: { personId } })
}

/** A log-in takes the address it carries with it; nobody is left without an identity. */
export async function unlinkIdentity(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { personId, identityId, seen }: { personId: string; identityId: string; seen: Seen },
): Promise<void> {
  assertRecent(actor, platform.clock())
  const [person] = await lockLiving(tx, [personId])
  if (person === undefined) throw notFound('person')
  assertVersion(seen, person.version)
  const { rows } = await tx.query<Identity & { subjectId: string | null }>(
    `select id, type, provider, value, is_primary as primary, subject_id as "subjectId"
       from hermod.person_identity where person_id = $1 and deleted_at is null order by id`,
    [personId],
  )
  const going = rows.filter(({ id, subjectId }) => id === identityId || subjectId === identityId)
  const identity = going.find(({ id }) => id === identityId)
  if (identity === undefined) throw notFound('identity of this person')
  const staying = rows.filter((each) => !going.includes(each))
  assertUnlinkable(identity, staying)
  await tx.query(
    `update hermod.person_identity set deleted_at = now(), updated_at = now(), is_primary = false
      where id = any ($1::bigint[])`,
    [going.map(({ id }) => id)],
  )
  const next = staying.find(({ primary }) => primary) ?? bestPrimary(staying)
  if (next !== undefined) await makePrimary(tx, next.id)
  await touch(tx, personId)
  const { type, provider, value } = identity
  const changes = { identity: identityId, type, provider, value, removed: going.length }
  await record(platform, tx, actor, { personId, action: 'unlinked', changes })
}

/** An address is what people recognise. */
function bestPrimary<T extends Pick<Identity, 'type'>>(identities: readonly T[]): T | undefined {
  return identities.find(({ type }) => type === 'email') ?? identities[0]
}

export async function setPrimary(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { personId, identityId }: { personId: string; identityId: string },
): Promise<void> {
  assertRecent(actor, platform.clock())
  await lockLiving(tx, [personId])
  const identities = await identitiesOf(tx, personId)
  const wanted = identities.find(({ id }) => id === identityId)
  if (wanted === undefined) throw notFound('identity of this person')
  if (wanted.primary) return
  await tx.query('update hermod.person_identity set is_primary = false where person_id = $1 and is_primary', [personId])
  await makePrimary(tx, identityId)
  await touch(tx, personId)
  const before = identities.find(({ primary }) => primary)?.id ?? null
  const changes = { from: before, to: identityId }
  await record(platform, tx, actor, { personId, action: 'primary_changed', changes })
}
