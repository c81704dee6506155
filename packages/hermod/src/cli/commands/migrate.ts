/** `hermod migrate`: installs or updates the schema `outbox`; safe to run again, also by many at once. */
import { type Database, select } from '../../database.ts'
import { type Migration, migrate, migrations } from '../../migrate.ts'
import { type Command, type Context, flagOf, numberOf, textOf, usage } from '../command.ts'
import { withDatabase } from '../connect.ts'

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
    return withDatabase(context, (db) =>
      flagOf(context, 'dry-run') ? dryRun(db, context) : apply(db, context),
    )
  },
}

async function apply(db: Database, context: Context): Promise<number> {
  const { terminal } = context
  const lanes = numberOf(context, 'lanes')
  if (lanes !== undefined && (lanes < 1 || lanes > 256)) throw usage('--lanes must be 1 to 256')
  const result = await migrate(db, { lanes })
  if (terminal.json) terminal.document(result)
  else for (const name of result.applied) terminal.data(name)
  const done = result.applied.length === 0 ? 'Nothing to do' : `${result.applied.length} applied`
  terminal.say(`${done}: the schema is at version ${result.version}.`)
  return 0
}

async function dryRun(db: Database, { terminal }: Context): Promise<number> {
  const missing = (await missingIn(db)).map(({ name }) => name)
  if (terminal.json) terminal.document({ missing })
  else for (const name of missing) terminal.data(name)
  terminal.say(missing.length === 0 ? 'Nothing to do.' : 'Nothing was changed; these are missing.')
  return 0
}

async function printSql(context: Context): Promise<number> {
  const named = textOf(context, 'url') ?? context.env.DATABASE_URL
  const some = named ? await withDatabase(context, missingIn) : migrations()
  context.terminal.data(some.map(asSql).join('\n'))
  return 0
}

async function missingIn(db: Database): Promise<Migration[]> {
  const [found] = await select(db, `select to_regclass('outbox.migration')::text as name`)
  const rows = found?.name ? await select(db, 'select version::text from outbox.migration') : []
  return migrations().filter(({ version }) => !rows.some((row) => Number(row.version) === version))
}

/** What migrate() does, in one transaction a migration. */
function asSql({ version, name, hash, sql }: Migration): string {
  return `-- ${name}
begin;
set local client_min_messages = warning;
create schema if not exists outbox;
create table if not exists outbox.migration (
  version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now());
insert into outbox.migration (version, name, hash) values (${version}, '${name}', '${hash}');
${sql.trimEnd()}
commit;
`
}
