/** The principal of an API token: its scopes, limited to what the person's role allows now. */
import type { Principal, Role } from '../actor.ts'
import { type Permission, permissionsOf } from '../permissions.ts'
import type { Platform } from '../platform.ts'
import { unauthenticated } from './bearer.ts'
import { hashOf, isApiToken } from './rules.ts'

interface FoundToken {
  readonly id: string
  readonly prefix: string
  readonly scopes: readonly Permission[]
  readonly person_id: string
  readonly role: Role
  readonly stale: boolean
}

const find = `select t.id, t.prefix, t.scopes, t.person_id, p.role,
       coalesce(t.last_used_at < $2::timestamptz - interval '1 minute', true) as stale
  from hermod.api_token t join hermod.person p on p.id = t.person_id
 where t.hash = $1 and t.revoked_at is null and t.expires_at > $2 and p.deleted_at is null`

export async function principalOfToken(platform: Platform, token: string): Promise<Principal> {
  const now = platform.clock()
  const found = isApiToken(token) ? await findToken(platform, token, now) : undefined
  if (found === undefined) {
    throw unauthenticated('The API token is unknown, revoked or expired.')
  }
  const allowed = permissionsOf(found.role)
  return {
    personId: found.person_id,
    identity: `api_token:hermod:${found.prefix}`,
    role: found.role,
    permissions: new Set(found.scopes.filter((scope) => allowed.has(scope))),
  }
}

async function findToken({ pool }: Platform, token: string, now: Date): Promise<FoundToken | undefined> {
  const { rows } = await pool.query<FoundToken>(find, [hashOf(token), now])
  const [found] = rows
  // Once a minute is enough to see which tokens are in use.
  if (found?.stale) {
    await pool.query('update hermod.api_token set last_used_at = $2 where id = $1', [found.id, now])
  }
  return found
}
