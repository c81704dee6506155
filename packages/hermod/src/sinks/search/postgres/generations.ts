/**
 * Generations in PostgreSQL: a table each, made from its declaration, and a row that says which one
 * is live. Swapping is one transaction; readers hold the old one or the new one, never neither.
 *
 *   building ──swap──▶ live ──swap, roll back──▶ retired ──roll back──▶ live
 */
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { isNumeric } from '../check-request.ts'
import type { Generation } from '../engine.ts'
import { pick } from '../generations.ts'
import { inTransaction, type Session } from './session.ts'

export interface PostgresGeneration extends Generation {
  readonly definition: ResolvedDefinition
  /** Schema and name, quoted. */
  readonly table: string
  /** The words of its documents, for typing errors. */
  readonly wordTable: string
}

/** Names of columns; fields are letters, digits and _, so quoting is enough. */
export const numberColumn = (field: string) => `"n_${field}"`

export async function listGenerations(session: Session, schema: string, index: string): Promise<PostgresGeneration[]> {
  const rows = await session.rows(
    `select id::text, state, definition::text, (extract(epoch from created_at) * 1000)::bigint::text as created
       from ${schema}.generation where index_name = $1 order by id`,
    [index],
  )
  return rows.map(({ id, state, definition, created }) => ({
    id: id as string,
    state: state as Generation['state'],
    createdAt: new Date(Number(created)),
    definition: JSON.parse(definition as string),
    ...namesOf(schema, index, id as string),
  }))
}

function namesOf(schema: string, index: string, id: string) {
  const table = `${schema}."${index}_g${id}"`
  return { table, wordTable: `${schema}."${index}_g${id}_word"` }
}

export async function createGeneration(
  session: Session,
  schema: string,
  index: string,
  { definition, state }: { definition: ResolvedDefinition; state: 'building' | 'live' },
): Promise<PostgresGeneration> {
  const [row] = await session
    .rows(
      `insert into ${schema}.generation (index_name, state, definition, live_at)
       values ($1, $2, $3, case when $2 = 'live' then clock_timestamp() end) returning id::text`,
      [index, state, JSON.stringify(definition)],
    )
    .catch(refuseSecond(index, state))
  const id = row?.id as string
  for (const statement of tableOf(namesOf(schema, index, id), definition)) {
    await session.rows(statement)
  }
  return pick(await listGenerations(session, schema, index), index, id)
}

/** All of it or nothing, waiting for whoever ensures the index. */
export function createInOneStep(
  session: Session,
  schema: string,
  index: string,
  definition: ResolvedDefinition,
): Promise<PostgresGeneration> {
  return inTransaction(session, () => createGeneration(session, schema, index, { definition, state: 'building' }))
}

function refuseSecond(index: string, state: string) {
  return (error: unknown): never => {
    if ((error as { code?: string }).code !== '23505') throw error
    const says = `index ${index} already has a generation that is ${state}`
    throw new HermodError('HMD_SEARCH_GENERATION', says, { cause: error })
  }
}

/** Ids sort by bytes, so that a scan pages in the same order everywhere. */
function tableOf({ table, wordTable }: { table: string; wordTable: string }, { fields }: ResolvedDefinition): string[] {
  const numbers = fields.filter(isNumeric).map(({ name }) => numberColumn(name))
  const gin = 'with (gin_pending_list_limit = 1024)'
  return [
    `create table ${table} (
       id text collate "C" primary key, version bigint not null,
       deleted boolean not null default false, deleted_at timestamptz,
       hash text not null default '', source json,
       heading tsvector not null default '', words tsvector not null default '', keys text[] not null default '{}'
       ${numbers.map((name) => `, ${name} double precision`).join('')})`,
    `create index on ${table} using gin (words) ${gin} where not deleted`,
    `create index on ${table} using gin (heading) ${gin} where not deleted`,
    `create index on ${table} using gin (keys) ${gin} where not deleted`,
    `create index on ${table} (version desc, id) where not deleted`,
    `create index on ${table} (deleted_at) where deleted`,
    ...numbers.map((name) => {
      return `create index on ${table} (${name} desc nulls last, id) where not deleted`
    }),
    `create table ${wordTable} (word text collate "C" primary key)`,
    `do $$ declare s text := (select quote_ident(n.nspname) from pg_extension e
         join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm');
     begin execute format('create index on %s using gin (word %s.gin_trgm_ops)', '${wordTable}', s); end $$`,
  ]
}

/** Two swaps at once: the second waits for the first and finds nothing to swap. */
export function swapGeneration(session: Session, schema: string, index: string) {
  return changeLive(session, schema, index, {
    next: `state = 'building'`,
    missing: 'has no generation in the making',
  })
}

export function rollBackGeneration(session: Session, schema: string, index: string) {
  return changeLive(session, schema, index, {
    next: `id = (select id from ${schema}.generation where index_name = $1 and state = 'retired'
             order by live_at desc nulls last, id desc limit 1)`,
    missing: 'has no earlier generation to go back to',
  })
}

async function changeLive(
  session: Session,
  schema: string,
  index: string,
  { next, missing }: { next: string; missing: string },
): Promise<PostgresGeneration> {
  return inTransaction(session, async () => {
    await session.rows(`select from ${schema}.generation where index_name = $1 for update`, [index])
    const [row] = await session.rows(`select id::text from ${schema}.generation where index_name = $1 and ${next}`, [
      index,
    ])
    if (row === undefined) {
      throw new HermodError('HMD_SEARCH_GENERATION', `index ${index} ${missing}`)
    }
    await session.rows(`update ${schema}.generation set state = 'retired' where index_name = $1 and state = 'live'`, [
      index,
    ])
    await session.rows(`update ${schema}.generation set state = 'live', live_at = clock_timestamp() where id = $1`, [
      row.id,
    ])
    return pick(await listGenerations(session, schema, index), index, undefined)
  })
}

export async function dropGeneration(session: Session, schema: string, index: string, id: string): Promise<void> {
  await inTransaction(session, () => drop(session, schema, index, id))
}

/** Inside the caller's transaction. */
export async function drop(session: Session, schema: string, index: string, id: string): Promise<void> {
  const [row] = await session.rows(
    `delete from ${schema}.generation where index_name = $1 and id = $2 returning state`,
    [index, id],
  )
  if (row === undefined) return
  if (row.state === 'live') {
    const says = `generation ${id} of index ${index} is live and cannot be dropped`
    throw new HermodError('HMD_SEARCH_GENERATION', says)
  }
  const { table, wordTable } = namesOf(schema, index, id)
  await session.rows(`drop table if exists ${table}, ${wordTable}`)
}
