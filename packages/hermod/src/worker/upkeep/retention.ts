/**
 * Retention: leaves that are old and needed by nobody are archived where asked, emptied, and dropped
 * at the next turn. What holds a leaf is told, never waited for.
 */
import { type Database, isoTime, select } from '../../database.ts'
import type { Retention } from '../../options.ts'
import { type Listener, notify } from '../../telemetry.ts'
import { type Archive, archiveLeaf, type Part } from './archive.ts'

const LEAVES = `select parent, name, from_value::text, to_value::text, closed::text, frozen::text, archived_as, emptied::text
  from outbox.leaves()`
const DROP = 'select outbox.drop_leaf($1, $2) as answer'
const EMPTY = 'select outbox.empty_leaf($1, $2, $3::numeric) as answer'
const COPY = 'select outbox.copy_open($1, $2, 500)::text as copied'
const RANGE = 'select from_value::text, to_value::text from outbox.leaf_range($1, $2)'
const HOLDER = 'select outbox.log_holder($1, $2, $3::numeric) as holder'
const FREEZE = `insert into outbox.leaf as l (name, frozen_at) values ($1, outbox.clock())
  on conflict (name) do update set frozen_at = excluded.frozen_at where l.frozen_at is null returning name`
const FORGOTTEN = `select subscription, first_pos::text, ${isoTime('since')}, held_bytes::text from outbox.retention_report($1::numeric)
  where held_bytes > 0 and served_at < outbox.clock() - interval '1 day'`

export interface Leaf {
  readonly parent: string
  readonly name: string
  readonly from: string | null
  readonly to: string | null
  readonly closed: boolean
  readonly frozen: boolean
  readonly archived: boolean
  readonly emptied: boolean
}

/** What was done, and what could not be. */
export interface RetentionResult {
  readonly dropped: string[]
  readonly emptied: string[]
  /** Leaf → why it stays. */
  readonly held: Map<string, string>
}

export async function retain(db: Database, retention: Retention, listener: Listener): Promise<RetentionResult> {
  const result: RetentionResult = { dropped: [], emptied: [], held: new Map() }
  const leaves = await readLeaves(db)
  for (const leaf of leaves.filter(({ emptied }) => emptied)) await drop(db, leaf, result)
  const unfrozen = leaves.filter(({ closed, frozen, emptied }) => closed && !frozen && !emptied)
  for (const leaf of unfrozen) await freeze(db, leaf)
  for (const leaf of ofParent(leaves, 'log')) {
    // In order: positions stay dense from the first one there is.
    if (!(await emptyLog(db, leaf, retention, listener, result))) break
  }
  for (const leaf of ofParent(leaves, 'event')) await emptyEvent(db, leaf, result)
  for (const leaf of ofParent(leaves, 'attempt')) await empty(db, leaf, retention.attemptDays, result)
  return result
}

/** Closed leaves that still hold rows, and the default one, which is never closed. */
function ofParent(leaves: readonly Leaf[], parent: string): Leaf[] {
  return leaves.filter((leaf) => leaf.parent === parent && !leaf.emptied && (leaf.closed || leaf.to === null))
}

export async function readLeaves(db: Database): Promise<Leaf[]> {
  const rows = await select(db, LEAVES)
  return rows.map((row) => ({
    parent: row.parent as string,
    name: row.name as string,
    from: row.from_value ?? null,
    to: row.to_value ?? null,
    closed: row.closed === 'true',
    frozen: row.frozen === 'true',
    archived: row.archived_as !== null,
    emptied: row.emptied === 'true',
  }))
}

async function drop(db: Database, leaf: Leaf, result: RetentionResult): Promise<void> {
  const [row] = await select(db, DROP, [leaf.parent, leaf.name])
  if (row?.answer === 'dropped') result.dropped.push(leaf.name)
  else result.held.set(leaf.name, row?.answer ?? 'busy')
}

/** Once, when nothing is inserted any more. Whoever wrote the note does it; SKIP_LOCKED never waits. */
async function freeze(db: Database, { name }: Leaf): Promise<void> {
  const [mine] = await select(db, FREEZE, [name])
  if (mine !== undefined) await db.query({ text: `vacuum (freeze, skip_locked) outbox."${name}"` })
}

/** False: it stays, and so do the later ones. */
async function emptyLog(
  db: Database,
  leaf: Leaf,
  { eventDays, archive }: Retention,
  listener: Listener,
  result: RetentionResult,
): Promise<boolean> {
  if (archive !== undefined && !leaf.archived) {
    const [row] = await select(db, HOLDER, [leaf.name, leaf.to, eventDays])
    if (row?.holder) {
      result.held.set(leaf.name, row.holder)
      return false
    }
    if (!(await archived(db, { name: leaf.name, to: leaf.to as string, whole: true }, archive, listener))) {
      result.held.set(leaf.name, 'not archived')
      return false
    }
  }
  return empty(db, leaf, eventDays, result)
}

/** False, and told: what is not in the archive stays. */
export async function archived(db: Database, part: Part, archive: Archive, listener: Listener): Promise<boolean> {
  try {
    await archiveLeaf(db, part, archive)
    return true
  } catch (cause) {
    tellArchive(listener, part.name, cause)
    return false
  }
}

export function tellArchive(listener: Listener, what: string, cause: unknown): void {
  const says = cause instanceof Error ? cause.message : String(cause)
  const message = `${what} could not be archived and stays: ${says}`
  notify(listener, 'warning', { code: 'HMD_ARCHIVE_FAILED', message })
}

/** What is open keeps a copy of its event; then the leaf may go. */
async function emptyEvent(db: Database, leaf: Leaf, result: RetentionResult): Promise<void> {
  if ((await empty(db, leaf, 0, result)) || !result.held.get(leaf.name)?.startsWith('open')) return
  const [range] = await select(db, RANGE, [leaf.parent, leaf.name])
  const bounds = [range?.from_value ?? null, range?.to_value ?? null]
  for (;;) {
    const [row] = await select(db, COPY, bounds)
    if (!(Number(row?.copied) > 0)) break
  }
  await empty(db, leaf, 0, result)
}

async function empty(
  db: Database,
  { parent, name }: Leaf,
  days: number,
  { emptied, held }: RetentionResult,
): Promise<boolean> {
  const [row] = await select(db, EMPTY, [parent, name, days])
  const answer = row?.answer ?? 'busy'
  held.delete(name)
  if (answer === 'emptied') emptied.push(name)
  else if (answer !== 'empty') held.set(name, answer)
  return answer === 'emptied' || answer === 'empty'
}

/** A subscription nobody serves must not fill the disk in silence: told once while it lasts. */
export class Forgotten {
  #told = new Set<string>()

  async look(db: Database, listener: Listener, days: number): Promise<void> {
    const rows = await select(db, FORGOTTEN, [days])
    for (const row of rows.filter(({ subscription }) => !this.#told.has(subscription as string))) {
      notify(listener, 'warning', {
        code: 'HMD_RETENTION_HELD',
        message: `${row.subscription} has not been served for a day and holds ${row.held_bytes} bytes since ${row.since}`,
        subscription: row.subscription as string,
        details: { position: row.first_pos, bytes: row.held_bytes, since: row.since },
      })
    }
    this.#told = new Set(rows.map(({ subscription }) => subscription as string))
  }
}
