/**
 * The second half of the import: if the last modifier of a document is unknown, it is the owner;
 * a document without a workspace provider gets the provider of the legacy system.
 */
import type { Actor } from '../actor.ts'
import { type Asked, type Platform, transaction } from '../platform.ts'
import { findTable, type LegacyTable } from './legacy-table.ts'
import { refreshDocuments } from './references/refresh.ts'

export interface ImportedDocuments {
  /** Rows of the legacy table whose last modifier was set. */
  readonly modifiersSet: number
  /** Rows of the legacy table whose workspace provider was set. */
  readonly providersSet: number
  /** Documents of this server whose last modifier was set from their first owner. */
  readonly ownModifiersSet: number
  /** What could not be done, and why. */
  readonly skipped: readonly string[]
}

interface Wanted {
  readonly users: LegacyTable
  readonly documents?: string | undefined
  readonly dryRun: boolean
  /** Who a dry run would have imported. */
  readonly ids: readonly string[]
}

const legacyWorkspace = 'google'
const batchRows = 5_000

export async function importModifiers(
  platform: Platform,
  actor: Actor,
  { users, documents, dryRun, ids }: Wanted,
): Promise<ImportedDocuments> {
  const name = documents ?? 'documents'
  const table = await findTable(platform.pool, name, users.schema)
  const skipped: string[] = []
  const lacks = (...columns: readonly string[]): boolean => {
    const missing = columns.filter((column) => !table?.columns.has(column))
    if (table !== undefined && missing.length > 0) {
      skipped.push(`${name} has no column ${missing.join(', ')}`)
    }
    return table === undefined || missing.length > 0
  }
  if (table === undefined) skipped.push(`there is no table ${name} beside the users`)
  const legacy = table?.name ?? ''
  return {
    modifiersSet: lacks('id', 'owner_id', 'last_modified_by_person_id')
      ? 0
      : await setModifiers(platform, legacy, { dryRun, ids }),
    providersSet: lacks('id', 'workspace_provider') ? 0 : await setProviders(platform, legacy, dryRun),
    ownModifiersSet: await setOwnModifiers(platform, actor, dryRun),
    skipped,
  }
}

/** Batch after batch, until nothing is left to change. */
async function inBatches(platform: Platform, change: string): Promise<number> {
  for (let changed = 0; ; ) {
    const { rowCount } = await transaction(platform, (tx) => tx.query(change))
    if (!rowCount) return changed
    changed += rowCount
  }
}

async function countOf(db: Asked, rows: string, values: unknown[] = []): Promise<number> {
  const found = await db.query<{ n: number }>(`select count(*)::int as n from (${rows}) r`, values)
  return found.rows[0]?.n ?? 0
}

function setModifiers(
  platform: Platform,
  table: string,
  { dryRun, ids }: Pick<Wanted, 'ids' | 'dryRun'>,
): Promise<number> {
  const open = `select d.id from ${table} d
    where d.last_modified_by_person_id is null and d.owner_id is not null`
  const imported = `exists (select from hermod.person_audit a
    where a.action = 'imported' and a.person_id = d.owner_id::bigint)`
  if (dryRun) {
    const planned = `${open} and (${imported} or d.owner_id::bigint = any ($1::bigint[]))`
    return countOf(platform.pool, planned, [ids])
  }
  return inBatches(
    platform,
    `update ${table} set last_modified_by_person_id = owner_id
      where id in (${open} and ${imported} order by d.id limit ${batchRows})
        and last_modified_by_person_id is null`,
  )
}

function setProviders(platform: Platform, table: string, dryRun: boolean): Promise<number> {
  const open = `select d.id from ${table} d where coalesce(d.workspace_provider::text, '') = ''`
  if (dryRun) return countOf(platform.pool, open)
  return inBatches(
    platform,
    `update ${table} set workspace_provider = '${legacyWorkspace}'
      where id in (${open} order by d.id limit ${batchRows})`,
  )
}

const FIRST_OWNERS = `select d.id, (select o.person_id from hermod.document_person o
    where o.document_id = d.id and o.relation = 'owner' order by o.place limit 1) as owner
  from hermod.document d where d.last_modified_by_person_id is null
   and exists (select from hermod.document_person o where o.document_id = d.id and o.relation = 'owner')`

async function setOwnModifiers(platform: Platform, actor: Actor, dryRun: boolean): Promise<number> {
  if (dryRun) {
    return countOf(platform.pool, FIRST_OWNERS)
  }
  return transaction(platform, async (tx) => {
    const { rows } = await tx.query<{ owner: string }>(
      `update hermod.document d set last_modified_by_person_id = f.owner from (${FIRST_OWNERS}) f
        where d.id = f.id returning f.owner`,
    )
    const owners = [...new Set(rows.map(({ owner }) => owner))]
    if (owners.length > 0) await refreshDocuments(platform, tx, actor, owners)
    return rows.length
  })
}
