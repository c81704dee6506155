/**
 * `hermod migrate`: installs or updates the schema `outbox`, and the server's where it is installed;
 * safe to run again, also by many at once.
 */
import { type Database, select } from '../../database.ts'
import { type Migration, migrate, migrations } from '../../migrate.ts'
import { applyMigrations, type NumberedSql, readMigrations } from '../../numbered-sql.ts'
import { installedRoutines, isCurrent, routines } from '../../routines.ts'
import { version } from '../../version.ts'
import { type Command, type Context, flagOf, numberOf, textOf, usage } from '../command.ts'
import { withDatabase } from '../connect.ts'
import { serverPart } from '../server-part.ts'

export const command: Command = {
  name: 'migrate',
  summary: 'install or update the schema in the database',
  usage: 'hermod migrate [--dry-run | --sql] [--lanes N]',
  examples: [
    'hermod migrate',
    'hermod migrate --dry-run          # what would be applied',
    'hermod migrate --sql > hermod.sql # for whoever may change the database',
  ],
  options: {
    'dry-run': { type: 'boolean', says: 'only say what is missing' },
    sql: { type: 'boolean', says: 'print plain SQL: what the named database lacks, or everything' },
    lanes: {
      type: 'string',
      value: 'N',
      says: '1 to 256, fixed by the first migration; 16 when left out',
    },
  },
  async run(context) {
    if (flagOf(context, 'sql')) return printSql(context)
    return withDatabase(context, (db) => (flagOf(context, 'dry-run') ? dryRun(db, context) : apply(db, context)))
  },
}

async function apply(db: Database, context: Context): Promise<number> {
  const { terminal } = context
  const lanes = numberOf(context, 'lanes')
  if (lanes !== undefined && (lanes < 1 || lanes > 256)) throw usage('--lanes must be 1 to 256')
  const result = await migrate(db, { lanes })
  const applied = [...result.applied]
  for (const schema of await serverSchemas()) {
    const names = await applyMigrations(db, schema)
    applied.push(...names.map((name) => `${schema.schema}/${name}`))
  }
  if (terminal.json) terminal.document({ ...result, applied })
  else for (const name of applied) terminal.data(name)
  const done = applied.length === 0 ? 'Nothing to do' : `${applied.length} applied`
  terminal.say(`${done}: the schema is at version ${result.version}.`)
  if (result.routines !== version) {
    terminal.say(`The routines are those of ${result.routines}, newer than this ${version}; they stay.`)
  }
  return 0
}

async function dryRun(db: Database, { terminal }: Context): Promise<number> {
  const missing = (await missingIn(db)).map(({ label }) => label)
  if (terminal.json) terminal.document({ missing })
  else for (const name of missing) terminal.data(name)
  terminal.say(missing.length === 0 ? 'Nothing to do.' : 'Nothing was changed; these are missing.')
  return 0
}

async function printSql(context: Context): Promise<number> {
  const named = textOf(context, 'url') ?? context.env.DATABASE_URL
  const some = named ? await withDatabase(context, missingIn) : await known()
  context.terminal.data(some.map(asSql).join('\n'))
  return 0
}

interface Known {
  readonly schema: string
  /** As printed: the engine's migrations by name, the server's with their schema in front. */
  readonly label: string
  readonly sql: string
  /** Of a migration; the engine's routines have none. */
  readonly version?: number
}

/** Where the server is installed, its tables are migrated by the same command. */
async function serverSchemas(): Promise<readonly NumberedSql[]> {
  return (await serverPart())?.schemas ?? []
}

/** All migrations, the engine's first. */
async function known(): Promise<Known[]> {
  const mine = migrations().map((each) => migrationPart('outbox', each.name, each))
  const more = (await serverSchemas()).flatMap(({ folder, schema }) =>
    readMigrations(folder).map((each) => migrationPart(schema, `${schema}/${each.name}`, each)),
  )
  return [...mine, routinesPart(), ...more]
}

function migrationPart(schema: string, label: string, { version, name, hash, sql }: Migration): Known {
  const begin = `create schema if not exists ${schema};
create table if not exists ${schema}.migration (
  version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now());
insert into ${schema}.migration (version, name, hash) values (${version}, '${name}', '${hash}');`
  return { schema, label, version, sql: `${begin}\n${sql.trimEnd()}` }
}

function routinesPart(): Known {
  const { sql, hash, version } = routines()
  const end = `insert into outbox.routine (hash, version) values ('${hash}', '${version}')
on conflict (only_row) do update set hash = excluded.hash, version = excluded.version, applied_at = default;`
  return { schema: 'outbox', label: 'routines', sql: `${sql.trimEnd()}\n${end}` }
}

async function missingIn(db: Database): Promise<Known[]> {
  const all = await known()
  const done = new Set<string>()
  for (const schema of new Set(all.map((each) => each.schema))) {
    const table = `${schema}.migration`
    const [found] = await select(db, 'select to_regclass($1)::text as name', [table])
    const rows = found?.name ? await select(db, `select version::text from ${table}`) : []
    for (const { version } of rows) done.add(`${schema} ${version}`)
  }
  if (isCurrent(await installedRoutines(db), routines())) done.add('outbox undefined')
  return all.filter(({ schema, version }) => !done.has(`${schema} ${version}`))
}

/** What migrate() does, part by part. */
function asSql({ label, sql }: Known): string {
  return `-- ${label}\nbegin;\nset local client_min_messages = warning;\n${sql}\ncommit;\n`
}
