/**
 * Upserts and deletions: one statement a batch and generation, ids in order so that two writers
 * cannot deadlock, and a version that only grows. A deletion leaves a tombstone, so that an upsert
 * that comes late stays out.
 */
import type { Database } from '../../../database.ts'
import { delivered, type Outcome, superseded } from '../../sink.ts'
import { isNumeric } from '../check-request.ts'
import type { Deletion, Upsert } from '../engine.ts'
import { hourly, newestOf, refused } from '../items.ts'
import type { Send } from '../shell.ts'
import { worstOf } from '../worst-outcome.ts'
import { type Session, withSession } from './api.ts'
import { type DocumentRow, keySeparator, rowOf, secondCutChars } from './document.ts'
import type { PostgresGeneration } from './generations.ts'
import { outcomeOfSqlError } from './outcomes.ts'
import { numberColumn } from './schema.ts'
import { textsOf, vectorsSql } from './vectors.ts'
import { WordList } from './words.ts'

export class PostgresWriter {
  readonly #db: Database
  readonly #tombstonesMs: number
  readonly #words = new WordList()
  readonly #purgeDue = hourly()

  constructor(db: Database, tombstonesMs: number) {
    this.#db = db
    this.#tombstonesMs = tombstonesMs
  }

  upserting(documents: readonly Upsert[]): Send<PostgresGeneration> {
    return this.#each((session, generation) => upsertInto(session, generation, documents, this.#words))
  }

  deleting(deletions: readonly Deletion[]): Send<PostgresGeneration> {
    return this.#each((session, generation) => deleteFrom(session, generation, deletions))
  }

  /** One generation after the other on one connection. */
  #each(write: (session: Session, generation: PostgresGeneration) => Promise<Outcome[]>): Send<PostgresGeneration> {
    return ({ targets, call }) =>
      withSession(this.#db, call.signal, async (session) => {
        const due = this.#purgeDue()
        if (due) this.#words.forget()
        const outcomes: Outcome[][] = []
        for (const target of targets) outcomes.push(await write(session, target))
        if (due) await this.#purge(session, targets)
        return worstOf(outcomes)
      })
  }

  async #purge(session: Session, targets: readonly PostgresGeneration[]): Promise<void> {
    for (const target of targets) {
      await purgeTombstones(session, target, this.#tombstonesMs).catch(() => {})
      await this.#words.prune(session, target).catch(() => {})
    }
  }
}

/** One outcome per document of one generation, in the order given. */
async function upsertInto(
  session: Session,
  generation: PostgresGeneration,
  documents: readonly Upsert[],
  words: WordList,
): Promise<Outcome[]> {
  const rows = documents.map((document) => rowOf(generation.definition, document))
  const newest = [...newestOf(rows.filter((row) => typeof row !== 'string')).values()]
  try {
    await words.add(session, generation, newest)
    const applied = await writeRows(session, generation, newest)
    return rows.map((row) => outcomeOf(row, newest, applied))
  } catch (error) {
    const again = await cutShort(session, generation, documents, error)
    if (again !== undefined) return again
    const outcome = outcomeOfSqlError(error, newest.length)
    return rows.map((row) => (typeof row === 'string' ? refused(row) : outcome))
  }
}

/** A document whose words do not fit into a tsvector can be searched by its beginning. */
async function cutShort(
  session: Session,
  generation: PostgresGeneration,
  documents: readonly Upsert[],
  error: unknown,
): Promise<Outcome[] | undefined> {
  const [only, second] = documents
  if ((error as { code?: unknown }).code !== '54000' || !only || second) return undefined
  const row = rowOf(generation.definition, only, secondCutChars)
  if (typeof row === 'string') return undefined
  try {
    const applied = await writeRows(session, generation, [row])
    return [outcomeOf(row, [row], applied)]
  } catch {
    return undefined
  }
}

function outcomeOf(row: DocumentRow | string, newest: readonly DocumentRow[], applied: ReadonlySet<string>): Outcome {
  if (typeof row === 'string') return refused(row)
  return applied.has(row.id) && newest.includes(row) ? delivered() : superseded()
}

/** Ids that were applied. */
async function writeRows(
  session: Session,
  generation: PostgresGeneration,
  rows: readonly DocumentRow[],
): Promise<Set<string>> {
  if (rows.length === 0) return new Set()
  const column = <T>(of: (row: DocumentRow) => T) => rows.map(of)
  const numbers = generation.definition.fields.filter(isNumeric).map((_, at) => at)
  const written = await session.rows(upsertSql(generation), [
    column(({ id }) => id),
    column(({ version }) => String(version)),
    column(({ hash }) => hash),
    column(({ json }) => json),
    ...textsOf(rows),
    column(({ keys }) => keys),
    ...numbers.map((at) => column((row) => row.numbers[at])),
  ])
  return new Set(written.map(({ id }) => id as string))
}

/** Tsvectors are made here, not by a generated column: the texts themselves are not kept twice. */
function upsertSql(generation: PostgresGeneration): string {
  const { table, definition } = generation
  const numbers = definition.fields.filter(isNumeric).map(({ name }) => numberColumn(name))
  const columns = ['hash', 'source', 'heading', 'words', 'keys', ...numbers]
  const { heading, words } = vectorsSql(generation)
  return `
    insert into ${table} as d (id, version, deleted, deleted_at, ${columns.join(', ')})
    select u.id, u.version, false, null, u.hash, u.source::json, ${heading},
           ${words},
           string_to_array(u.keys, '${keySeparator}')
           ${numbers.map((name) => `, u.${name}`).join('')}
      from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                  $9::text[], $10::text[] ${numbers.map((_, at) => `, $${at + 11}::float8[]`).join('')})
        as u(id, version, hash, source, ident, a, b, c, d, keys ${numbers.map((name) => `, ${name}`).join('')})
     order by u.id collate "C"
    on conflict (id) do update set version = excluded.version, deleted = false, deleted_at = null,
      ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}
     where d.version < excluded.version
    returning d.id`
}

/** One outcome per deletion of one generation, in the order given. */
async function deleteFrom(
  session: Session,
  { table, definition }: PostgresGeneration,
  deletions: readonly Deletion[],
): Promise<Outcome[]> {
  const numbers = definition.fields.filter(isNumeric).map(({ name }) => numberColumn(name))
  const newest = [...newestOf(deletions).values()]
  try {
    const written = await session.rows(
      `insert into ${table} as d (id, version, deleted, deleted_at)
       select u.id, u.version, true, clock_timestamp() from unnest($1::text[], $2::bigint[]) as u(id, version)
        order by u.id collate "C"
       on conflict (id) do update set version = excluded.version, deleted = true, deleted_at = excluded.deleted_at,
         hash = '', source = null, heading = '', words = '', keys = '{}' ${numbers.map((name) => `, ${name} = null`).join('')}
        where d.version < excluded.version
       returning d.id`,
      [newest.map(({ id }) => id), newest.map(({ version }) => String(version))],
    )
    const applied = new Set(written.map(({ id }) => id))
    return deletions.map((one) => (applied.has(one.id) && newest.includes(one) ? delivered() : superseded()))
  } catch (error) {
    const outcome = outcomeOfSqlError(error, newest.length)
    return deletions.map(() => outcome)
  }
}

/** Removes old tombstones: no upsert can be that late. */
async function purgeTombstones(session: Session, { table }: PostgresGeneration, olderThanMs: number): Promise<void> {
  await session.rows(
    `delete from ${table} where id in (select id from ${table}
        where deleted and deleted_at < clock_timestamp() - $1 * interval '1 millisecond'
        order by deleted_at limit 10000 for update skip locked)`,
    [olderThanMs],
  )
}
