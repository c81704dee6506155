/** `hermod import FILE`: documents from NDJSON or CSV, straight into the database. */
import { type Command, type Context, flagOf, textOf, usage } from 'hermod/cli'
import { configOptions } from '../config-options.ts'

export const command: Command = {
  name: 'import',
  summary: 'import documents from a CSV or NDJSON file',
  usage: 'hermod import FILE|- --as PERSON [--best-effort] [--dry-run] [--format csv|ndjson]',
  examples: [
    'hermod import documents.csv --as ada@example.org --dry-run',
    'hermod import documents.ndjson --as ada@example.org',
    'hermod import documents.csv --as 17 --best-effort --json',
    'zcat documents.csv.gz | hermod import - --format csv --as ada@example.org',
  ],
  options: {
    config: configOptions.config,
    as: { type: 'string', value: 'PERSON', says: 'who imports: a verified address or an id' },
    format: { type: 'string', value: 'FORMAT', says: 'csv or ndjson; by the ending of FILE' },
    'best-effort': { type: 'boolean', says: 'import the good rows; all or nothing without it' },
    'dry-run': { type: 'boolean', says: 'only say what would happen' },
    key: { type: 'string', value: 'TEXT', says: 'imports once per key; the hash of the file' },
  },
  notes: [
    'A file that was imported is not imported again: the second run says what the first one did.',
    'An interrupted --best-effort goes on where it stopped when the same command runs again.',
    'Exits 1 when rows failed. --json prints one document, with the first 1,000 wrong rows.',
  ],
  async run(context) {
    const [file, ...rest] = context.args
    if (file === undefined || rest.length > 0) {
      throw usage('name one FILE, or - for standard input', 'Run hermod import --help.')
    }
    const as = textOf(context, 'as')
    if (as === undefined) {
      throw usage('--as is needed: the person who imports, by verified address or id')
    }
    const { withPlatform } = await import('../people/with-platform.ts')
    const { importFile } = await import('../import-file.ts')
    const options = { file, as, format: formatOf(context, file), key: keyOf(context) }
    const flags = { bestEffort: flagOf(context, 'best-effort'), dryRun: flagOf(context, 'dry-run') }
    return withPlatform(context, (platform) => importFile(platform, context, { ...options, ...flags }))
  },
}

const endings = { csv: /\.csv$/i, ndjson: /\.(ndjson|jsonl)$/i } as const

function formatOf(context: Context, file: string): keyof typeof endings {
  const given = textOf(context, 'format')
  if (given === 'csv' || given === 'ndjson') return given
  if (given !== undefined) throw usage('--format must be csv or ndjson')
  if (endings.csv.test(file)) return 'csv'
  if (endings.ndjson.test(file)) return 'ndjson'
  throw usage(`the format of ${file} cannot be told by its name`, 'Add --format csv or ndjson.')
}

function keyOf(context: Context): string | undefined {
  const key = textOf(context, 'key')
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw usage('--key must be 1 to 255 printable characters without spaces')
}
