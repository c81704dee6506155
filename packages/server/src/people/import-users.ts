/**
 * From a legacy table `users(id, email_address, …)` to people: ids and times are kept, each gets one
 * primary, verified address. In batches, each in one transaction; a second run changes nothing.
 */
import type { Actor } from '../actor.ts'
import { type Asked, type Platform, type Tx, transaction } from '../platform.ts'
import { type ImportedDocuments, importModifiers } from './import-documents.ts'
import { judge, type KnownBefore, type LegacyUser, type RowProblem } from './import-rules.ts'
import { findUsers, type LegacyTable } from './legacy-table.ts'
import { headersOf } from './record.ts'
import { folded } from './rules.ts'

/** Legacy users signed in with Google; nothing else is known about them. */
export const legacyProvider = 'google'
const batchRows = 1_000
const problemsMax = 1_000

export interface ImportOptions {
  /** `public.users` when left out. */
  readonly table?: string | undefined
  /** Legacy table of documents; `documents` in the schema of the users when left out. */
  readonly documents?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly onProgress?: (progress: { done: number; total: number }) => void
}

export interface ImportReport {
  readonly dryRun: boolean
  readonly rows: number
  readonly imported: number
  readonly unchanged: number
  readonly refused: number
  /** The first thousand refused rows. */
  readonly problems: readonly RowProblem[]
  readonly documents: ImportedDocuments
}

export async function importUsers(
  platform: Platform,
  actor: Actor,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const { dryRun = false, onProgress = () => {} } = options
  const users = await findUsers(platform.pool, options.table ?? 'public.users')
  const { total, lastId } = await measure(platform.pool, users)
  if (!dryRun) await moveSequence(platform, lastId)
  const report = { rows: 0, imported: 0, unchanged: 0, refused: 0, problems: [] as RowProblem[] }
  const planned = new Map<string, string>()
  onProgress({ done: 0, total })
  for (let after: string | null = null; ; ) {
    const batch: readonly LegacyUser[] = await readBatch(platform.pool, users, after)
    if (batch.length === 0) break
    const found = await importBatch(platform, actor, batch, { dryRun, planned })
    report.rows += batch.length
    report.imported += found.accepted.length
    report.unchanged += found.unchanged
    report.refused += found.problems.length
    report.problems.push(...found.problems.slice(0, problemsMax - report.problems.length))
    after = batch.at(-1)?.id ?? null
    onProgress({ done: report.rows, total })
  }
  const ids = [...planned.values()]
  const documents = await importModifiers(platform, actor, { ...options, users, dryRun, ids })
  return { dryRun, ...report, documents }
}

async function measure(db: Asked, { name }: LegacyTable) {
  const { rows } = await db.query<{ total: number; last: string | null }>(
    `select count(*)::int as total,
            max(id) filter (where id between 1 and 9007199254740992)::bigint as last from ${name}`,
  )
  return { total: rows[0]?.total ?? 0, lastId: rows[0]?.last ?? null }
}

/**
 * New people are numbered behind the imported ones, from before the first of them is written. The
 * lock keeps numbers from being drawn while the sequence is set.
 */
async function moveSequence(platform: Platform, lastId: string | null): Promise<void> {
  if (lastId === null) return
  await transaction(platform, async (tx) => {
    await tx.query('lock table hermod.person in share row exclusive mode')
    await tx.query(
      `select setval(s.name, $1) from (select pg_get_serial_sequence('hermod.person', 'id') as name) s
        where $1 > coalesce(pg_sequence_last_value(s.name::regclass), 0)`,
      [lastId],
    )
  })
}

async function readBatch(db: Asked, { name, columns }: LegacyTable, after: string | null): Promise<LegacyUser[]> {
  const at = (column: string) => (columns.has(column) ? `coalesce(${column}::timestamptz, now())` : 'now()')
  // In the type of the column, so that its index is used.
  const type = columns.get('id') ?? 'bigint'
  const { rows } = await db.query<LegacyUser>(
    `select id::text as id, email_address::text as email,
            ${at('created_at')}::text as "createdAt", ${at('updated_at')}::text as "updatedAt"
       from ${name} where id is not null and ($1::${type} is null or id > $1::${type})
      order by ${name}.id limit ${batchRows}`,
    [after],
  )
  return rows
}

interface Batching {
  readonly dryRun: boolean
  /** Addresses a dry run would have written by now. */
  readonly planned: Map<string, string>
}

/** If somebody logs in with one of the addresses at the same time, the batch is checked again. */
async function importBatch(
  platform: Platform,
  actor: Actor,
  batch: readonly LegacyUser[],
  { dryRun, planned }: Batching,
) {
  if (dryRun) {
    const known = await knownBefore(platform.pool, batch)
    const verdicts = judge(batch, { ...known, holders: new Map([...known.holders, ...planned]) })
    for (const { id, email } of verdicts.accepted) planned.set(folded(email ?? ''), id)
    return verdicts
  }
  for (let tries = 1; ; tries++) {
    try {
      return await transaction(platform, async (tx) => {
        const verdicts = judge(batch, await knownBefore(tx, batch))
        await write(platform, tx, actor, verdicts.accepted)
        return verdicts
      })
    } catch (error) {
      if ((error as { code?: unknown }).code !== '23505' || tries === 5) throw error
    }
  }
}

async function knownBefore(db: Asked, batch: readonly LegacyUser[]): Promise<KnownBefore> {
  const whole = batch.map(({ id }) => id).filter((id) => /^\d{1,16}$/.test(id))
  const addresses = batch.map(({ email }) => folded(email ?? ''))
  const { rows } = await db.query(
    `select array(select id::text from hermod.person where id = any ($1::bigint[])) as ids,
            array(select person_id::text from hermod.person_audit
                   where action = 'imported' and person_id = any ($1::bigint[])) as imported,
            array(select array[key, person_id::text] from hermod.person_identity
                   where type = 'email' and provider = $3 and deleted_at is null
                     and key = any ($2::text[])) as holders`,
    [whole, addresses, legacyProvider],
  )
  const [{ ids, imported, holders }] = rows as [{ ids: string[]; imported: string[]; holders: [string, string][] }]
  return { ids: new Set(ids), imported: new Set(imported), holders: new Map(holders) }
}

async function write(platform: Platform, tx: Tx, actor: Actor, users: readonly LegacyUser[]): Promise<void> {
  if (users.length === 0) return
  await tx.query(WRITE, [
    ...[users.map(({ id }) => id), users.map(({ email }) => email)],
    ...[users.map(({ createdAt }) => createdAt), users.map(({ updatedAt }) => updatedAt)],
    ...[platform.config.defaultRole, legacyProvider],
    ...[actor.personId, actor.identity, actor.endpoint, actor.requestId],
  ])
  if (!platform.config.outbox) return
  const headers = headersOf(actor)
  await platform.outbox.emit(
    tx,
    users.map(({ id, email }) => ({
      type: 'person.created',
      aggregate: ['person', id] as const,
      headers,
      payload: { id, displayName: email, role: platform.config.defaultRole, imported: true },
    })),
  )
}

const WRITE = `with u as (
  select * from unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::timestamptz[])
    as u (id, email, created_at, updated_at)
), people as (
  insert into hermod.person (id, display_name, role, created_at, updated_at)
  select id, left(email, 200), $5, created_at, updated_at from u
), identities as (
  insert into hermod.person_identity
    (person_id, type, provider, value, verified_at, is_primary, created_at, updated_at)
  select id, 'email', $6, email, now(), true, created_at, updated_at from u
)
insert into hermod.person_audit (person_id, action, changes, actor_id, identity, endpoint, request_id)
select id, 'imported', jsonb_build_object('address', email), $7, $8, $9, $10 from u`
