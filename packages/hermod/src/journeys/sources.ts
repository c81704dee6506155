/**
 * tableSource and querySource: rows by key, of any key that can be ordered. The document is the row
 * as JSON, made by PostgreSQL and never parsed here, or whatever `map` makes of it.
 */
import { type Checked, callable, checkOptions, list, optional, type Problem, rule, text } from '../check-options.ts'
import { type Database, type PoolClient, select, transaction } from '../database.ts'
import { HermodError } from '../errors.ts'
import type { IndexSource, RefusedRow, SourceDocument, SourceRows } from './source.ts'

export interface TableSourceOptions {
  /** `public.documents`; quote a name that needs it. */
  readonly table: string
  /** Column or columns of the key; `id` when left out. */
  readonly key?: string | readonly string[]
  /** What the document holds of the row; the key is not added. All columns when left out. */
  readonly columns?: readonly string[]
  /** SQL: which rows belong to the index, like `published_at is not null`. */
  readonly where?: string
  readonly map?: RowMap
}

export interface QuerySourceOptions {
  /** A SELECT without parameters and without `order by`; its rows have a key. */
  readonly query: string
  readonly key?: string | readonly string[]
  readonly map?: RowMap
  /** For people; `a query` when left out. */
  readonly name?: string
}

/** Gets a row as the driver gives it. Return nothing if it does not belong to the index. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows its columns
export type RowMap = (row: any) => object | undefined | null

const notEmpty = text((value) => (String(value).trim() === '' ? 'must not be empty' : undefined))

const keyRule = rule<readonly string[]>((value, field, problems: Problem[]) => {
  const names = value === undefined ? ['id'] : Array.isArray(value) ? value : [value]
  return list(notEmpty, { min: 1, max: 8 }).read(names, field, problems)
})

const tableSpec = {
  table: notEmpty,
  key: keyRule,
  columns: optional(list(notEmpty, { min: 1 })),
  where: optional(notEmpty),
  map: optional(callable<RowMap>()),
}

const querySpec = {
  query: text((value) => (/;\s*$/.test(String(value)) ? 'must not end with ;' : undefined)),
  key: keyRule,
  map: optional(callable<RowMap>()),
  name: optional(notEmpty),
}

export function tableSource(given: TableSourceOptions): IndexSource {
  const { table, key, columns, where, map } = checkOptions('tableSource', given, tableSpec)
  const wanted = columns === undefined ? '*' : [...new Set([...key, ...columns])].map(quoted).join()
  const query = `select ${wanted} from ${table}${where === undefined ? '' : ` where ${where}`}`
  return new KeyedSource({ name: table, query, key, columns, map })
}

export function querySource(given: QuerySourceOptions): IndexSource {
  const { query, key, map, name } = checkOptions('querySource', given, querySpec) as Checked<typeof querySpec>
  return new KeyedSource({ name: name ?? 'a query', query, key, columns: undefined, map })
}

interface Shape {
  readonly name: string
  readonly query: string
  readonly key: readonly string[]
  readonly columns: readonly string[] | undefined
  readonly map: RowMap | undefined
}

/** Times are written in UTC, as capturing a table writes them. */
const UTC = `set local timezone = 'UTC'`
const POSITION = `select coalesce((select pos from outbox.step order by id desc limit 1), 0)::text as pos`
const exactRowsMax = 100_000

class KeyedSource implements IndexSource {
  readonly name: string
  readonly #shape: Shape
  readonly #keys: readonly string[]
  readonly #id: string

  constructor(shape: Shape) {
    this.name = shape.name
    this.#shape = shape
    this.#keys = shape.key.map((name) => `q.${quoted(name)}`)
    this.#id = idOf(this.#keys)
  }

  async page(db: Database, { after, limit }: { after?: string | undefined; limit: number }) {
    const from = after === undefined ? [] : (JSON.parse(after) as string[])
    const places = from.map((_, at) => `$${at + 1}`).join(', ')
    const where = after === undefined ? '' : `where (${this.#keys.join(', ')}) > (${places})`
    const { rows, position } = await this.#read(
      db,
      `${where} order by ${this.#keys.join(', ')} limit ${Math.floor(limit)}`,
      from,
    )
    const last = rows.at(-1)
    return {
      ...this.#documents(rows),
      position,
      rows: rows.length,
      ...(last !== undefined && rows.length >= limit && { next: last.hermod_key as string }),
    }
  }

  async find(db: Database, ids: readonly string[]): Promise<SourceRows> {
    if (ids.length === 0) return { documents: [], refused: [], position: 0n }
    const { rows, position } = await this.#found(db, ids)
    return { ...this.#documents(rows), position }
  }

  async count(db: Database): Promise<number> {
    const { query } = this.#shape
    const few = `select count(*)::text as n from (select from (${query}) q limit ${exactRowsMax + 1}) r`
    const [row] = await this.#select(db, few)
    if (Number(row?.n) <= exactRowsMax) return Number(row?.n)
    const [plan] = await this.#select(db, `explain (format json) select from (${query}) q`)
    const [{ Plan }] = JSON.parse(Object.values(plan ?? {})[0] as string)
    return Math.max(exactRowsMax, Number(Plan['Plan Rows']))
  }

  async sample(db: Database, count: number): Promise<readonly string[]> {
    const rows = await this.#select(
      db,
      `select ${this.#id} as id from (${this.#shape.query}) q order by random() limit $1`,
      [count],
    )
    return rows.map(({ id }) => id as string)
  }

  /** An id that is not a valid key of this table is compared as text: slow, and rare. */
  async #found(db: Database, ids: readonly string[]) {
    const asText = () => this.#read(db, `where ${this.#id} = any ($1::text[])`, [ids])
    const [only, second] = this.#keys
    if (second === undefined) {
      return this.#read(db, `where ${only} = any ($1)`, [ids]).catch(orElse(asText))
    }
    const keys = ids.map(parsedKey)
    if (keys.some((key) => key.length !== this.#keys.length)) return asText()
    let n = 0
    const places = keys.map((key) => `(${key.map(() => `$${++n}`).join(', ')})`).join(', ')
    const where = `where (${this.#keys.join(', ')}) in (${places})`
    return this.#read(db, where, keys.flat()).catch(orElse(asText))
  }

  /** The position first, in a statement of its own: what is read afterwards is at least as new. */
  async #read(db: Database, rest: string, values: readonly unknown[]) {
    const { query, map } = this.#shape
    const columns = map === undefined ? `${this.#json()} as hermod_json` : 'q.*'
    const key = `json_build_array(${this.#keys.map((name) => `${name}::text`).join(', ')})::text`
    return this.#named(() =>
      transaction(db, async (tx) => {
        await tx.query(`${UTC}; set local statement_timeout = '120s'`)
        const [head] = await select(tx, POSITION)
        const text = `select ${columns}, ${this.#id} as hermod_id, ${key} as hermod_key from (${query}) q ${rest}`
        const { rows } = await tx.query({ text, values })
        return { rows: rows as Row[], position: BigInt(head?.pos ?? 0) }
      }),
    )
  }

  #json(): string {
    const { columns } = this.#shape
    if (columns === undefined) return 'to_jsonb(q)::text'
    const pairs = columns.map((name) => `${literal(name)}, q.${quoted(name)}`)
    return `jsonb_build_object(${pairs.join(', ')})::text`
  }

  #documents(rows: readonly Row[]): Pick<SourceRows, 'documents' | 'refused'> {
    const { map } = this.#shape
    const documents: SourceDocument[] = []
    const refused: RefusedRow[] = []
    for (const { hermod_id, hermod_key: _, hermod_json, ...row } of rows) {
      const id = hermod_id as string
      if (map === undefined) {
        documents.push({ id, json: hermod_json as string })
        continue
      }
      try {
        const made = map(row)
        if (made !== undefined && made !== null) documents.push({ id, json: JSON.stringify(made) })
      } catch (error) {
        refused.push({ id, why: error instanceof Error ? error.message : String(error) })
      }
    }
    return { documents, refused }
  }

  #select(db: Database | PoolClient, sql: string, values: readonly (string | number)[] = []) {
    return this.#named(() => select(db, sql, values))
  }

  /** A wrong table, column or condition is an error of the declaration. */
  async #named<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const { code, message } = error as { code?: unknown; message?: string }
      if (typeof code !== 'string' || !/^(42|0A)/.test(code)) throw error
      const says = `the source ${this.name} cannot be read: ${message}`
      throw new HermodError('HMD_SOURCE_INVALID', says, { cause: error })
    }
  }
}

type Row = Record<string, unknown>

/** One key column: its text. Several: a JSON array without spaces. As outbox.key_text. */
function idOf(keys: readonly string[]): string {
  const [only, second] = keys
  if (second === undefined) return `(to_jsonb(${only}) #>> '{}')`
  return `('[' || ${keys.map((name) => `to_jsonb(${name})::text`).join(` || ',' || `)} || ']')`
}

function parsedKey(id: string): string[] {
  try {
    const values: unknown = JSON.parse(id)
    if (!Array.isArray(values)) return []
    // A number that JavaScript rounds is compared as text.
    const exact = values.every((one) => typeof one !== 'number' || Number.isSafeInteger(one))
    return exact ? values.map(String) : []
  } catch {
    return []
  }
}

/** 22P02, 22003, 22007, 22008: text that is no value of the key's type. */
function orElse<T>(other: () => Promise<T>) {
  return (error: unknown): Promise<T> => {
    const { code } = error as { code?: unknown }
    if (typeof code === 'string' && /^22(P02|003|007|008)$/.test(code)) return other()
    throw error
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function literal(name: string): string {
  return `'${name.replaceAll("'", "''")}'`
}
