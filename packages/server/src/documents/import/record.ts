/**
 * The record of an import, and the key that makes it happen once: whoever repeats a request gets the
 * finished import, waits for the running one, or continues the one whose process died.
 */
import type { Actor } from '../../actor.ts'
import { type Asked, type Platform, type Tx, transaction } from '../../platform.ts'
import { Problem } from '../../problems.ts'
import { errorsMax, type Received } from './receive.ts'
import type { RowError } from './rows.ts'
import type { BatchResult } from './write.ts'

export const importModes = ['all', 'best-effort'] as const
export type ImportMode = (typeof importModes)[number]
export const importStates = ['running', 'interrupted', 'succeeded', 'failed'] as const
export type ImportState = (typeof importStates)[number]

export interface ImportRecord {
  readonly id: string
  readonly state: ImportState
  readonly mode: ImportMode
  readonly total: number
  readonly done: number
  readonly imported: number
  readonly failed: number
  readonly errors: readonly RowError[]
  readonly reason: string | null
  readonly actorId: string | null
  readonly identity: string
  readonly startedAt: Date
  readonly endedAt: Date | null
}

export interface Claim {
  readonly record: ImportRecord
  /** False: it is done already, and this is its answer. */
  readonly mine: boolean
  readonly attempt: number
}

/** A process without a sign of life for this long counts as dead; the same request continues its import. */
const SILENT = `state = 'running' and alive_at < clock_timestamp() - interval '30 seconds'`

const COLUMNS = `id, case when ${SILENT} then 'interrupted' else state end as state, mode, rows_total::float8 as total,
  row_done::float8 as done, rows_imported::float8 as imported, rows_failed::float8 as failed, errors, reason,
  actor_id as "actorId", identity, started_at as "startedAt", ended_at as "endedAt"`

const CLAIM = `insert into hermod.import as i (mode, principal, key, fingerprint, rows_total, rows_failed, errors, actor_id, identity)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (principal, key) where key is not null do update set attempt = i.attempt + 1, alive_at = clock_timestamp()
    where i.fingerprint = excluded.fingerprint and i.${SILENT.replace('alive_at', 'i.alive_at')}
  returning ${COLUMNS}, attempt`

export async function claimImport(
  platform: Platform,
  actor: Actor,
  { mode, key }: { readonly mode: ImportMode; readonly key: string | undefined },
  { rows, failed, errors, hash }: Received,
): Promise<Claim> {
  const principal = principalOf(actor)
  const fingerprint = `${mode} ${hash}`
  const given = [mode, principal, key ?? null, fingerprint, rows, failed, JSON.stringify(errors)]
  return transaction(platform, async (tx) => {
    const { rows: claimed } = await tx.query(CLAIM, [...given, actor.personId, actor.identity])
    const [row] = claimed
    if (row === undefined) return repeated(tx, principal, key ?? '', fingerprint)
    const { attempt, ...record } = row
    return { record, attempt, mine: true }
  })
}

async function repeated(tx: Tx, principal: string, key: string, asked: string): Promise<Claim> {
  const { rows } = await tx.query(
    `select ${COLUMNS}, attempt, fingerprint from hermod.import where principal = $1 and key = $2`,
    [principal, key],
  )
  const [row] = rows
  if (row === undefined) throw inUse()
  const { attempt, fingerprint, ...record } = row
  if (fingerprint !== asked) {
    throw new Problem('HMD_KEY_REUSED', 'Use a new Idempotency-Key for another file or mode.')
  }
  if (record.endedAt === null) throw inUse(record.id)
  return { record, attempt, mine: false }
}

function inUse(id?: string): Problem {
  const where = id === undefined ? '' : ` GET /api/v2/imports/${id} shows how far it is.`
  return new Problem('HMD_KEY_IN_USE', `This import is running.${where}`, {
    headers: { 'retry-after': '5' },
    ...(id !== undefined && { facts: { import: id } }),
  })
}

/** In the transaction that wrote the batch. Refused when somebody took over. */
export async function noteBatch(
  tx: Tx,
  { record, attempt }: Claim,
  row: number,
  { imported, failed, errors }: BatchResult,
): Promise<void> {
  const { rowCount } = await tx.query(
    `update hermod.import set row_done = $3, rows_imported = rows_imported + $4, rows_failed = rows_failed + $5,
        errors = case when jsonb_array_length(errors) < ${errorsMax} then errors || $6::jsonb else errors end, alive_at = clock_timestamp()
      where id = $1 and attempt = $2 and state = 'running'`,
    [record.id, attempt, row, imported, failed, JSON.stringify(errors)],
  )
  if (rowCount !== 1) throw new Problem('HMD_CONFLICT', 'Another process goes on with this import.')
}

/** Outside of the transaction, for whoever watches; a hint, and a sign of life. */
export async function noteProgress(db: Asked, { record, attempt }: Claim, row: number) {
  await db.query(
    `update hermod.import set row_done = $3, alive_at = clock_timestamp()
      where id = $1 and attempt = $2 and state = 'running'`,
    [record.id, attempt, row],
  )
}

export async function endImport(
  db: Asked,
  { record, attempt }: Claim,
  state: 'succeeded' | 'failed',
  failure?: {
    readonly reason: string
    readonly failed: number
    readonly errors: readonly RowError[]
  },
): Promise<ImportRecord> {
  const { reason = null, failed = null, errors = null } = failure ?? {}
  const { rows } = await db.query(
    `update hermod.import set state = $3, ended_at = clock_timestamp(), row_done = case when $3 = 'failed' then row_done else rows_total end,
        key = case when $3 = 'failed' then null else key end, reason = $4, rows_imported = case when $3 = 'failed' and mode = 'all' then 0 else rows_imported end,
        rows_failed = coalesce($5, rows_failed), errors = coalesce($6::jsonb, errors)
      where id = $1 and attempt = $2 and state = 'running' returning ${COLUMNS}`,
    [record.id, attempt, state, reason, failed, errors === null ? null : JSON.stringify(errors)],
  )
  if (rows[0] === undefined) {
    throw new Problem('HMD_CONFLICT', 'Another process goes on with this import.')
  }
  return rows[0]
}

/** Somebody's own; everybody's for those who administer people. */
export async function findImport(db: Asked, id: string): Promise<ImportRecord | undefined> {
  const { rows } = await db.query(`select ${COLUMNS} from hermod.import where id = $1`, [id])
  return rows[0]
}

export function maySeeImport(record: ImportRecord, actor: Actor): boolean {
  if (actor.permissions.has('person:admin')) return true
  return actor.personId !== null && record.actorId === actor.personId
}

function principalOf({ personId, identity }: Actor): string {
  return personId === null ? identity : `person:${personId}`
}
