/** A table of somebody else: is it there, and which of the columns we know does it have? */
import type { Asked } from '../platform.ts'
import { Problem } from '../problems.ts'

export interface LegacyTable {
  /** Quoted, with its schema: safe inside a statement. */
  readonly name: string
  readonly schema: string
  /** Type by column. */
  readonly columns: ReadonlyMap<string, string>
}

const NAME = /^(?:([A-Za-z_]\w{0,62})\.)?([A-Za-z_]\w{0,62})$/

/** Undefined = there is no such table. `public` when the name says nothing else. */
export async function findTable(db: Asked, given: string, defaultSchema = 'public'): Promise<LegacyTable | undefined> {
  const [, schema = defaultSchema, table] = NAME.exec(given) ?? []
  if (table === undefined) throw notATable(given)
  const { rows } = await db.query<{ name: string; type: string }>(
    `select a.attname as name, format_type(a.atttypid, null) as type
       from pg_catalog.pg_attribute a
       join pg_catalog.pg_class c on c.oid = a.attrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')
        and a.attnum > 0 and not a.attisdropped`,
    [schema, table],
  )
  if (rows.length === 0) return undefined
  const columns = new Map(rows.map(({ name, type }) => [name, type]))
  return { name: `"${schema}"."${table}"`, schema, columns }
}

function notATable(given: string): Problem {
  const detail = `must be a table or schema.table (got ${JSON.stringify(given.slice(0, 64))})`
  return new Problem('HMD_RULE_BROKEN', `/table ${detail}`, {
    errors: [{ pointer: '/table', detail }],
  })
}

const whole = new Set(['smallint', 'integer', 'bigint', 'numeric'])

/** `users(id, email_address, …)`, or a refusal that names what is missing. */
export async function findUsers(db: Asked, given: string): Promise<LegacyTable> {
  const found = await findTable(db, given)
  const missing = ['id', 'email_address'].filter((column) => !found?.columns.has(column))
  const detail = problemOf(found, missing)
  if (found !== undefined && detail === undefined) return found
  throw new Problem('HMD_RULE_BROKEN', `/table ${given} ${detail}`, {
    errors: [{ pointer: '/table', detail: detail ?? '' }],
  })
}

function problemOf(found: LegacyTable | undefined, missing: readonly string[]): string | undefined {
  if (found === undefined) return 'is not there, or not readable'
  if (missing.length > 0) return `has no column ${missing.join(', ')}`
  const type = found.columns.get('id') ?? ''
  return whole.has(type) ? undefined : `has ids of type ${type}; whole numbers are needed`
}
