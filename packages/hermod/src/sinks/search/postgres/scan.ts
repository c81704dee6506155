/** Pages through a generation in key order. The cursor is the last id. */
import type { ScannedPage, ScanPage } from '../engine.ts'
import type { Session } from './api.ts'
import type { PostgresGeneration } from './generations.ts'

export async function scanIn(
  session: Session,
  { table }: PostgresGeneration,
  { after = '', limit = 1_000 }: ScanPage,
): Promise<ScannedPage> {
  const rows = await session.rows(
    `select id, version::text, hash from ${table} where not deleted and id > $1 order by id limit $2`,
    [after, limit + 1],
  )
  const documents = rows.slice(0, limit).map(({ id, version, hash }) => {
    return { id: id as string, version: BigInt(version as string), hash: hash as string }
  })
  const last = documents.at(-1)
  return { documents, ...(rows.length > limit && last && { next: last.id }) }
}
