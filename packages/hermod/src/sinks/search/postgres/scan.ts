/**
 * Pages through a generation in key order, with the hash of each document. The cursor is the last id. Unless it must be
 * fast, everything that is kept of a document is made again from its text and compared: keys, numbers and tsvectors.
 */
import type { Row } from '../../../database.ts'
import { isNumeric } from '../check-request.ts'
import { documentHash } from '../document-hash.ts'
import type { ScannedDocument, ScannedPage, ScanPage } from '../engine.ts'
import type { Session } from './api.ts'
import { type DocumentRow, keySeparator, rowOf, secondCutChars } from './document.ts'
import type { PostgresGeneration } from './generations.ts'
import { numberColumn } from './schema.ts'
import { textsOf, vectorsSql } from './vectors.ts'

/** A page of whole documents ends after so many bytes. */
const pageBytes = 8 * 1024 * 1024
/** SQLSTATE of a tsvector beyond 1 MB. */
const tooLong = '54000'

export async function scanIn(
  session: Session,
  generation: PostgresGeneration,
  { after = '', limit = 1_000, fast = false }: ScanPage,
): Promise<ScannedPage> {
  if (fast) return quickly(session, generation, { after, limit })
  const rows = await session.rows(
    `select * from (select ${columns(generation)}, count(*) over ()::text as found,
         sum(octet_length(source::text)) over (order by id) - octet_length(source::text) as before
        from (select * from ${generation.table} where not deleted and id > $1 order by id limit $2) d) d
      where before < ${pageBytes} order by id limit $3`,
    [after, limit + 1, limit],
  )
  const documents = await hashed(session, generation, rows)
  const last = documents.at(-1)
  return { documents, ...(Number(rows[0]?.found) > rows.length && last && { next: last.id }) }
}

async function quickly(
  session: Session,
  { table }: PostgresGeneration,
  { after, limit }: { readonly after: string; readonly limit: number },
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

/** What a stored document is compared by. */
export function columns({ definition }: PostgresGeneration): string {
  const numbers = definition.fields.filter(isNumeric).map(({ name }) => numberColumn(name))
  const parts = numbers.map((name) => `coalesce(${name}::text, '')`).join(` || ' ' || `)
  return `id, version::text, hash, source::text as json, array_to_string(keys, '${keySeparator}') as keys,
    ${parts === '' ? `''` : parts} as numbers`
}

/** Each with the hash of what it is now. */
export async function hashed(
  session: Session,
  generation: PostgresGeneration,
  rows: readonly Row[],
): Promise<ScannedDocument[]> {
  const made = rows.map((row) => remade(generation, row))
  const fitting = made.filter((row): row is DocumentRow => row !== undefined)
  const odd = await differing(session, generation, fitting)
  return rows.map((row, at) => {
    const fits = made[at] !== undefined && !odd.has(row.id as string)
    const id = row.id as string
    const hash = fits ? (made[at] as DocumentRow).hash : `altered-${documentHash(row)}`
    return { id, version: BigInt(row.version as string), hash }
  })
}

/** Undefined: its keys or numbers are not those of the document. */
function remade(
  { definition }: PostgresGeneration,
  { id, version, json, keys, numbers }: Row,
): DocumentRow | undefined {
  const upsert = { id: id as string, version: BigInt(version as string), json: (json as string | null) ?? 'null' }
  const row = rowOf(definition, upsert)
  if (typeof row === 'string' || row.keys !== keys) return undefined
  const stored = definition.fields.filter(isNumeric).map((_, at) => String(numbers).split(' ')[at])
  const same = row.numbers.every((number, at) => (number === null ? stored[at] === '' : Number(stored[at]) === number))
  return same ? row : undefined
}

/** Ids whose tsvectors are not those of their documents. */
async function differing(
  session: Session,
  generation: PostgresGeneration,
  rows: readonly DocumentRow[],
): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set()
  const { heading, words } = vectorsSql(generation)
  try {
    const found = await session.rows(
      `select d.id from ${generation.table} d
         join unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
              as u(id, version, ident, a, b, c, d) on u.id = d.id and u.version = d.version
        where d.heading is distinct from ${heading} or d.words is distinct from ${words}`,
      [rows.map(({ id }) => id), rows.map(({ version }) => String(version)), ...textsOf(rows)],
    )
    return new Set(found.map(({ id }) => id as string))
  } catch (error) {
    if ((error as { code?: unknown }).code !== tooLong) throw error
    return halves(session, generation, rows)
  }
}

/** One of them has too many words for a tsvector: it was cut when it was written. */
async function halves(session: Session, generation: PostgresGeneration, rows: readonly DocumentRow[]) {
  const [only, second] = rows
  if (only !== undefined && second === undefined) return cut(session, generation, only)
  const middle = Math.ceil(rows.length / 2)
  const left = await differing(session, generation, rows.slice(0, middle))
  return new Set([...left, ...(await differing(session, generation, rows.slice(middle)))])
}

async function cut(session: Session, generation: PostgresGeneration, row: DocumentRow): Promise<ReadonlySet<string>> {
  const shorter = rowOf(generation.definition, row, secondCutChars)
  const fits = typeof shorter === 'object' && shorter.texts.join().length < row.texts.join().length
  return fits ? differing(session, generation, [shorter]) : new Set([row.id])
}
