/** API tokens as their owners and admins see them: never the secret, never its hash. */

import type { Permission } from '../permissions.ts'
import type { Asked } from '../platform.ts'

export interface TokenRecord {
  readonly id: string
  readonly personId: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly Permission[]
  readonly createdAt: string
  readonly expiresAt: string
  readonly lastUsedAt: string | null
  readonly revokedAt: string | null
}

interface Row {
  readonly id: string
  readonly person_id: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly Permission[]
  readonly created_at: Date
  readonly expires_at: Date
  readonly last_used_at: Date | null
  readonly revoked_at: Date | null
}

const columns = 'id, person_id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at'

function recordOf(row: Row): TokenRecord {
  return {
    id: row.id,
    personId: row.person_id,
    name: row.name,
    prefix: row.prefix,
    scopes: row.scopes,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
  }
}

export async function findOne(db: Asked, id: string): Promise<TokenRecord | undefined> {
  const { rows } = await db.query<Row>(`select ${columns} from hermod.api_token where id = $1`, [id])
  return rows[0] && recordOf(rows[0])
}

/** Newest first, below `before`; of one person, or of everybody (null). */
export async function listTokens(
  db: Asked,
  { person, before, limit }: { person: string | null; before: string | null; limit: number },
): Promise<TokenRecord[]> {
  const { rows } = await db.query<Row>(
    `select ${columns} from hermod.api_token
      where ($1::bigint is null or person_id = $1) and ($2::bigint is null or id < $2)
      order by id desc limit $3`,
    [person, before, limit],
  )
  return rows.map(recordOf)
}
