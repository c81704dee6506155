/** Makes an index true to its declaration, as far as that is possible without filling it again. */
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { EnsuredIndex } from '../engine.ts'
import { createGeneration, drop, listGenerations, type PostgresGeneration } from './generations.ts'
import { inTransaction, type Session } from './session.ts'

/** One process at a time for one index: the others wait and then find it. */
export async function ensureIndex(
  session: Session,
  schema: string,
  index: string,
  definition: ResolvedDefinition,
): Promise<EnsuredIndex> {
  return inTransaction(session, async () => {
    await session.rows('select pg_advisory_xact_lock(hashtextextended($1, 4841297201))', [`${schema}.${index}`])
    const all = await listGenerations(session, schema, index)
    const live = all.find(({ state }) => state === 'live')
    if (live === undefined) return create(session, schema, index, definition, 'created')
    return compare(session, schema, index, { live, definition })
  })
}

async function compare(
  session: Session,
  schema: string,
  index: string,
  { live, definition }: { live: PostgresGeneration; definition: ResolvedDefinition },
): Promise<EnsuredIndex> {
  const change = compareDefinitions(live.definition, definition)
  if (change === 'none') return { generation: live.id, state: 'unchanged' }
  if (change === 'displayed') {
    await session.rows(`update ${schema}.generation set definition = $2 where id = $1`, [
      live.id,
      JSON.stringify(definition),
    ])
    return { generation: live.id, state: 'updated' }
  }
  const [row] = await session.rows(`select exists (select from ${live.table})::text as used`)
  if (row?.used === 'true') return { generation: live.id, state: 'rebuild-needed' }
  await session.rows(`update ${schema}.generation set state = 'retired' where id = $1`, [live.id])
  const created = await create(session, schema, index, definition, 'updated')
  await drop(session, schema, index, live.id)
  return created
}

async function create(
  session: Session,
  schema: string,
  index: string,
  definition: ResolvedDefinition,
  state: EnsuredIndex['state'],
): Promise<EnsuredIndex> {
  const { id } = await createGeneration(session, schema, index, { definition, state: 'live' })
  return { generation: id, state }
}
