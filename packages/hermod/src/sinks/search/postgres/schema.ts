/**
 * What the PostgreSQL engine installs: a schema of its own with the list of generations, and the tables
 * of a generation. Any number of processes may install at once; a second time changes nothing.
 */
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { isNumeric } from '../check-request.ts'
import { inTransaction, type Session } from './api.ts'

/** Its own number among the advisory locks of the database (routines/clock.sql lists them). */
const LOCK = 4841297202
const VERSION = 2
const MIN_SERVER_VERSION = 140_000

const TABLES = (schema: string) => `
create schema if not exists ${schema};
create table ${schema}.installed (version integer primary key);
create table ${schema}.generation (
  id         bigint generated always as identity primary key,
  index_name text not null,
  state      text not null check (state in ('building', 'live', 'retired')),
  definition jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  live_at    timestamptz);
create unique index on ${schema}.generation (index_name) where state = 'live';
create unique index on ${schema}.generation (index_name) where state = 'building';
`

/**
 * Words like a misspelt one, by trigrams: 100,000 words take 14 MB and 25 µs per new word, where a
 * table of deletions took 121 MB and 190 µs. Two letters swapped share few trigrams (budget and
 * bugdet: 0.27), hence the low threshold; the caller measures the distance.
 */
const NEAR = (schema: string, extensions: string) => `
create or replace function ${schema}.near(target regclass, given text) returns setof text
language plpgsql stable set search_path = ${extensions}, pg_catalog set pg_trgm.similarity_threshold = 0.25 as $$
begin
  return query execute format(
    'select word from %s where word %% $1 and length(word) between length($1) - 2 and length($1) + 2
      order by similarity(word, $1) desc, word', target) using given;
end $$;
`

/** Version 2: words that no document holds any more are removed after a while. */
const WORDS_WITH_TIMES = (schema: string) => `
do $$ declare list text; begin
  for list in select format('${schema}.%I', index_name || '_g' || id || '_word') from ${schema}.generation loop
    execute format('alter table %s add column if not exists written_at timestamptz not null default now()', list);
  end loop;
end $$;
`

export async function install(session: Session, schema: string): Promise<void> {
  if (await isInstalled(session, schema)) return
  await refuseServer(session)
  await inTransaction(session, async () => {
    await session.rows(`set local lock_timeout = '60s'`)
    await session.rows(`select pg_advisory_xact_lock(${LOCK})`)
    if (await isInstalled(session, schema)) return
    await session.rows('set local client_min_messages = warning')
    const extensions = await trigrams(session)
    const version = await installedVersion(session, schema)
    if (version === 0) await create(session, TABLES(schema))
    if (version === 1) await session.rows(WORDS_WITH_TIMES(schema))
    await session.rows(NEAR(schema, extensions))
    await session.rows(`insert into ${schema}.installed values (${VERSION})`)
  })
}

/** Asks the catalogue by a snapshot: `to_regclass` may remember that there was no such table. */
async function installedVersion(session: Session, schema: string): Promise<number> {
  const [found] = await session.rows(
    `select from pg_class where relname = 'installed' and relnamespace = (select oid from pg_namespace where nspname = $1)`,
    [schema],
  )
  if (found === undefined) return 0
  const [row] = await session.rows(`select max(version)::text as version from ${schema}.installed`)
  return Number(row?.version ?? 0)
}

async function isInstalled(session: Session, schema: string): Promise<boolean> {
  const version = await installedVersion(session, schema)
  if (version > VERSION) {
    const says = `the schema ${schema} has version ${version}, this library knows ${VERSION}`
    throw new HermodError('HMD_MIGRATION_NEWER', says)
  }
  return version === VERSION
}

async function refuseServer(session: Session): Promise<void> {
  const [server] = await session.rows(
    `select current_setting('server_version_num') as number, current_setting('server_version') as version,
            pg_is_in_recovery()::text as standby`,
  )
  if (Number(server?.number) < MIN_SERVER_VERSION) {
    const says = `this server is PostgreSQL ${server?.version}, 14 is needed`
    throw new HermodError('HMD_POSTGRES_TOO_OLD', says)
  }
  if (server?.standby === 'true') {
    throw new HermodError('HMD_STANDBY', 'the search database is a standby')
  }
}

/** The schema pg_trgm lives in, wherever somebody put it. */
async function trigrams(session: Session): Promise<string> {
  await create(session, 'create extension if not exists pg_trgm')
  const [row] = await session.rows(
    `select quote_ident(n.nspname) as name from pg_extension e join pg_namespace n on n.oid = e.extnamespace
      where e.extname = 'pg_trgm'`,
  )
  return row?.name ?? 'public'
}

/** 42501: not allowed; 58P01 and 0A000: the server does not have the extension's files. */
async function create(session: Session, sql: string): Promise<void> {
  try {
    await session.rows(sql)
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string }
    if (code === undefined || !['42501', '58P01', '0A000', '3F000'].includes(code)) throw error
    const what = sql.includes('extension') ? 'the extension pg_trgm' : 'the search schema'
    const says = `${what} cannot be created: ${message}`
    throw new HermodError('HMD_SEARCH_SETUP', says, { cause: error })
  }
}

/** Names of columns; fields are letters, digits and _, so quoting is enough. */
export const numberColumn = (field: string) => `"n_${field}"`

/** Ids sort by bytes, so that a scan pages in the same order everywhere. */
export function tableOf(
  { table, wordTable }: { readonly table: string; readonly wordTable: string },
  { fields }: ResolvedDefinition,
): string[] {
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
    `create table ${wordTable} (word text collate "C" primary key, written_at timestamptz not null default now())`,
    `do $$ declare s text := (select quote_ident(n.nspname) from pg_extension e
         join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm');
     begin execute format('create index on %s using gin (word %s.gin_trgm_ops)', '${wordTable}', s); end $$`,
  ]
}
