/** Making and revoking API tokens; each leaves a row in the audit trail of its person. */
import type { Actor, Role } from '../actor.ts'
import { type Permission, permissionsOf } from '../permissions.ts'
import type { Platform, Tx } from '../platform.ts'
import { notFound, Problem } from '../problems.ts'
import { assertRecent } from '../recent-sign-in.ts'
import { findOne, type TokenRecord } from './queries.ts'
import { assertScopes, isPrivileged, newSecret } from './rules.ts'

const liveMax = 50

export interface NewToken {
  readonly name: string
  readonly scopes: readonly Permission[]
  readonly expiresAt: Date
}

export interface CreatedToken {
  readonly token: TokenRecord
  readonly secret: string
}

export async function createToken(
  { clock }: Pick<Platform, 'clock'>,
  tx: Tx,
  actor: Actor,
  wanted: NewToken,
): Promise<CreatedToken> {
  if (wanted.scopes.some(isPrivileged)) assertRecent(actor, clock())
  const role = await lockPerson(tx, actor)
  assertScopes(wanted.scopes, actor.permissions, permissionsOf(role))
  await assertRoom(tx, actor)
  const { prefix, secret, hash } = newSecret()
  const { rows } = await tx.query<{ id: string }>(
    `insert into hermod.api_token (person_id, name, prefix, hash, scopes, created_by, expires_at)
     values ($1, $2, $3, $4, $5, $1, $6) returning id`,
    [actor.personId, wanted.name, prefix, hash, wanted.scopes, wanted.expiresAt],
  )
  const token = await findOne(tx, rows[0]?.id as string)
  if (token === undefined) throw notFound('token')
  await record(tx, actor, token, 'token_created')
  return { token, secret }
}

/** `owner` narrows it to the tokens of one person; revoking what is revoked changes nothing. */
export async function revokeToken(tx: Tx, actor: Actor, id: string, owner: string | null): Promise<void> {
  const { rows } = await tx.query<{ revoked: boolean }>(
    `select revoked_at is not null as revoked from hermod.api_token
      where id = $1 and ($2::bigint is null or person_id = $2) for update`,
    [id, owner],
  )
  const [found] = rows
  if (found === undefined) throw notFound('token')
  if (found.revoked) return
  await tx.query('update hermod.api_token set revoked_at = now(), revoked_by = $2 where id = $1', [id, actor.personId])
  const token = await findOne(tx, id)
  if (token !== undefined) await record(tx, actor, token, 'token_revoked')
}

/** One person's tokens are made one after the other, under the role the person has right now. */
async function lockPerson(tx: Tx, { personId }: Actor): Promise<Role> {
  const { rows } = await tx.query<{ role: Role }>(
    'select role from hermod.person where id = $1 and deleted_at is null for update',
    [personId],
  )
  const [person] = rows
  if (person === undefined) throw notFound('person')
  return person.role
}

async function assertRoom(tx: Tx, { personId }: Actor): Promise<void> {
  const { rows } = await tx.query<{ live: number }>(
    `select count(*)::int as live from hermod.api_token
      where person_id = $1 and revoked_at is null and expires_at > now()`,
    [personId],
  )
  if ((rows[0]?.live ?? 0) < liveMax) return
  throw new Problem('HMD_RULE_BROKEN', `A person has at most ${liveMax} tokens: revoke one first.`)
}

async function record(tx: Tx, actor: Actor, token: TokenRecord, action: string): Promise<void> {
  const { id, prefix, name, scopes } = token
  await tx.query(
    `insert into hermod.person_audit (person_id, action, changes, actor_id, identity, endpoint, request_id)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      ...[token.personId, action, JSON.stringify({ token: id, prefix, name, scopes })],
      ...[actor.personId, actor.identity, actor.endpoint, actor.requestId],
    ],
  )
}
