/**
 * define: stores a subscription made at run time, kind of sink and settings included, and reads stored ones. Every
 * parameter is text, so that it can run in a transaction of any client library.
 */
import { type Database, isoTime, type Row, select } from '../database.ts'
import type { ResolvedDefinition } from '../options.ts'
import type { StoredDefinition } from '../sink-kinds.ts'
import { arrayLiteral } from './emit.ts'
import { startPosition } from './subscribe.ts'

const DEFINE = `select outbox.define($1::text, $2::text::int, $3::text, $4::text::jsonb, $5::text::jsonb,
  $6::text::text[], $7::text::text[],
  case when $8::text = 'all' then (select lanes from outbox.setting) else 1::smallint end, $9::text::boolean,
  $10::text::boolean, $11::text::boolean, $12::text::boolean, $13::text, $14::text::bigint)::text as revision`

const STORED = `select s.name, s.revision::text, s.kind, s.mode, s.ledger::text, s.definition::text, ${isoTime('s.created_at', 'created')}
    from outbox.subscription s where s.kind is not null`
const ONE = `select s.*, x.settings::text from (${STORED} and s.name = any ($1::text[])) s
  join outbox.sink_settings x on x.subscription = s.name`
const PAGE = `${STORED} and ($1::text is null or s.kind = $1) and ($2::text is null or s.name > $2) order by s.name limit $3`

type Run = (text: string, values: readonly (string | null)[]) => Promise<readonly Record<string, unknown>[]>

/** The revision it has now. `expected`: null = it must be new; else the revision that is changed. */
export async function define(
  db: Database,
  run: Run,
  { name, kind, settings, from, mode, ledger = false, ...policy }: ResolvedDefinition,
  expected: number | null,
): Promise<number> {
  const { types, aggregates, lanes, order, coalesce, onDead } = policy
  const [row] = await run(DEFINE, [
    ...[name, expected === null ? null : String(expected), kind, JSON.stringify(settings)],
    ...[JSON.stringify({ kind, ...policy, ledger }), arrayLiteral(types), aggregates ? arrayLiteral(aggregates) : null],
    ...[String(lanes), String(order === 'aggregate'), String(coalesce === 'latest'), String(ledger)],
    ...[String(onDead === 'hold'), mode, await startPosition(db, from)],
  ])
  return Number(row?.revision)
}

/** Those of these names that were made at run time. */
export async function definitions(db: Database, names: readonly string[]): Promise<Stored[]> {
  const rows = await select(db, ONE, [arrayLiteral(names)])
  return rows.map(stored)
}

export interface Page {
  readonly kind?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** Without settings. */
export async function definitionPage(db: Database, { kind, after, limit }: Page): Promise<Stored[]> {
  const rows = await select(db, PAGE, [kind ?? null, after ?? null, limit])
  return rows.map(stored)
}

export interface Stored extends StoredDefinition {
  readonly mode: 'live' | 'dry-run' | 'paused'
  readonly createdAt: Date
}

function stored(row: Row): Stored {
  return {
    name: row.name as string,
    revision: Number(row.revision),
    kind: row.kind as string,
    mode: row.mode as Stored['mode'],
    ledger: row.ledger === 'true',
    settings: JSON.parse(row.settings ?? '{}'),
    definition: JSON.parse(row.definition as string),
    createdAt: new Date(row.created as string),
  }
}
