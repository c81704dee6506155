/**
 * The configuration from the outside: flags over environment over `.env` over `hermod.toml` over
 * defaults. Every problem is reported at once, and every value remembers where it came from.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { HermodError } from 'hermod'
import { didYouMean, maskUrl, nearest } from 'hermod/cli'
import { parse, TomlError } from 'smol-toml'
import type { Config } from './config.ts'
import { archiveProblem, retentionOf } from './retention-settings.ts'
import type { Setting } from './setting.ts'
import { settings } from './settings.ts'

export interface Sources {
  /** By key: `{ port: '4400' }`. Undefined = not given. */
  readonly flags?: Readonly<Record<string, string | undefined>>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Holds `.env` and `hermod.toml`; the current one when left out. */
  readonly folder?: string
  /** Another project file; it must exist then. */
  readonly file?: string
  /** A worker signs nothing and does not listen: it needs no secret. */
  readonly secretNeeded?: boolean
}

export interface ConfigEntry {
  readonly key: string
  readonly variable: string
  /** For people: secrets are masked. */
  readonly shown: string
  /** `--port`, `HERMOD_PORT`, `.env`, `hermod.toml`, `default`. */
  readonly origin: string
}

export interface ConfigProblem {
  readonly key: string
  readonly origin: string
  readonly says: string
}

export interface ConfigReading {
  /** Undefined where there are problems. */
  readonly config: Config | undefined
  readonly entries: readonly ConfigEntry[]
  readonly problems: readonly ConfigProblem[]
}

interface Found {
  readonly value: unknown
  readonly origin: string
}

/** Complete and frozen, or HMD_OPTION_INVALID with every problem there is. */
export function readConfig(sources: Sources = {}): Config {
  const { config, problems } = inspectConfig(sources)
  if (config !== undefined) return config
  throw refusal(problems)
}

export function refusal(problems: readonly ConfigProblem[]): HermodError {
  const [count, thing] = [problems.length, problems.length === 1 ? 'problem' : 'problems']
  const lines = problems.map(({ key, origin, says }) => `  ${key} (${origin}) ${says}`)
  return new HermodError('HMD_OPTION_INVALID', `${count} ${thing} in the configuration\n${lines.join('\n')}`, {
    field: problems[0]?.key,
    details: { problems },
    fix: 'hermod config show prints what is in effect and where it came from.',
  })
}

/** What is in effect and what is wrong with it, without refusing. */
export function inspectConfig(sources: Sources = {}): ConfigReading {
  const problems: ConfigProblem[] = []
  const layers = readLayers(sources, problems)
  const values = new Map<string, unknown>()
  const entries = settings.map((setting) => {
    const found = findIn(layers, setting) ?? inDefault(setting, sources)
    values.set(setting.key, accept(setting, found, problems))
    return entryOf(setting, found)
  })
  const together = archiveProblem((key) => values.get(key))
  if (together !== undefined) problems.push({ ...together, origin: originOf(entries, together.key) })
  const config = problems.length === 0 ? assemble(values, sources) : undefined
  return { config, entries, problems }
}

function originOf(entries: readonly ConfigEntry[], key: string): string {
  return entries.find((entry) => entry.key === key)?.origin ?? 'nowhere'
}

/** Looks a setting up in one place. */
type Layer = (setting: Setting) => Found | undefined

/** Highest precedence first. */
function readLayers(sources: Sources, problems: ConfigProblem[]): Layer[] {
  const { flags = {}, env = process.env, folder = process.cwd() } = sources
  const dotenv = readDotenv(join(folder, '.env'))
  refuseMisspelt(env, 'environment', problems)
  refuseMisspelt(dotenv, '.env', problems)
  const project = readProject(sources, problems)
  return [
    ({ key }) => given(flags[key], `--${flagOf(key)}`),
    (setting) => inVariables(setting, env, ''),
    (setting) => inVariables(setting, dotenv, '.env '),
    ({ key }) => project.get(key),
  ]
}

function given(value: unknown, origin: string): Found | undefined {
  return value === undefined ? undefined : { value, origin }
}

/** `databaseUrl` is the option `--url` of every command. */
function flagOf(key: string): string {
  return key === 'databaseUrl' ? 'url' : key.replace(/[A-Z]/g, '-$&').toLowerCase()
}

type Env = Readonly<Record<string, string | undefined>>

/** An empty variable counts as not set: compose files often leave such variables. */
function inVariables({ variables }: Setting, env: Env, where: string): Found | undefined {
  const name = variables.find((each) => env[each] !== undefined && env[each] !== '')
  return name === undefined ? undefined : { value: env[name], origin: `${where}${name}` }
}

function readDotenv(file: string): Env {
  return existsSync(file) ? (parseEnv(readFileSync(file, 'utf8')) as Env) : {}
}

/**
 * Other programs may use HERMOD_ variables too, so an unknown one is no error; one that is
 * nearly one of ours is.
 */
function refuseMisspelt(env: Env, origin: string, problems: ConfigProblem[]): void {
  const known = settings.flatMap(({ variables }) => variables)
  for (const name of Object.keys(env)) {
    if (!name.startsWith('HERMOD_') || known.includes(name)) continue
    const rest = name.slice('HERMOD_'.length)
    const meant = nearest(
      rest,
      known.map((each) => each.replace('HERMOD_', '')),
    )
    if (meant === undefined) continue
    problems.push({
      key: name,
      origin,
      says: `is not a setting${didYouMean(name, known) || `; did you mean HERMOD_${meant}?`}`,
    })
  }
}

function readProject(sources: Sources, problems: ConfigProblem[]): Map<string, Found> {
  const { folder = process.cwd(), file } = sources
  const path = file === undefined ? join(folder, 'hermod.toml') : resolve(folder, file)
  const name = file ?? 'hermod.toml'
  if (!existsSync(path)) {
    if (file !== undefined) problems.push({ key: '--config', origin: name, says: 'is not there' })
    return new Map()
  }
  try {
    return known(flatten(parse(readFileSync(path, 'utf8'))), name, problems)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // Only its first line: the excerpt below it may hold a secret.
    const [first = ''] = error.message.split('\n')
    const says = `is not TOML at line ${error.line}, column ${error.column}: ${first}`
    problems.push({ key: name, origin: name, says })
    return new Map()
  }
}

/** `{ limits: { perMinute: 5 } }` → `limits.perMinute`; what is a value for us is left whole. */
function flatten(table: object, at = ''): [key: string, value: unknown][] {
  return Object.entries(table).flatMap(([name, value]) => {
    const key = `${at}${name}`
    const isTable = settings.some((setting) => setting.key.startsWith(`${key}.`))
    return isTable && typeof value === 'object' && value !== null
      ? flatten(value, `${key}.`)
      : [[key, value] as [string, unknown]]
  })
}

function known(pairs: readonly [string, unknown][], origin: string, problems: ConfigProblem[]): Map<string, Found> {
  const keys = settings.map(({ key }) => key)
  const found = new Map<string, Found>()
  for (const [key, value] of pairs) {
    if (keys.includes(key)) found.set(key, { value, origin })
    else problems.push({ key, origin, says: `is not a setting${didYouMean(key, keys)}` })
  }
  return found
}

function findIn(layers: readonly Layer[], setting: Setting): Found | undefined {
  for (const layer of layers) {
    const found = layer(setting)
    if (found !== undefined) return found
  }
  return undefined
}

function inDefault({ key, fallback }: Setting, { secretNeeded = true }: Sources): Found {
  if (key === 'secret' && !secretNeeded) {
    return { value: randomBytes(32).toString('hex'), origin: 'default' }
  }
  return { value: fallback, origin: 'default' }
}

function accept(setting: Setting, { value, origin }: Found, problems: ConfigProblem[]): unknown {
  const { key, variables, example, masked } = setting
  if (value === undefined) {
    const says = `is missing. Set ${variables[0]}, for example ${example}`
    problems.push({ key, origin: 'nowhere', says })
    return undefined
  }
  const read = setting.read(value)
  if ('value' in read) return read.value
  const got = masked ? '' : ` (got ${JSON.stringify(value)?.slice(0, 80)})`
  problems.push({ key, origin, says: `${read.must}${got}. For example: ${example}` })
  return undefined
}

function entryOf({ key, variables, masked }: Setting, { value, origin }: Found): ConfigEntry {
  const shown = masked ? mask(key, value) : typeof value === 'string' ? value : toText(value)
  return { key, variable: variables[0], shown, origin: value === undefined ? 'nowhere' : origin }
}

function toText(value: unknown): string {
  return value === undefined ? '–' : JSON.stringify(value)
}

function mask(key: string, value: unknown): string {
  if (value === undefined || value === '') return '–'
  return key.endsWith('Url') ? maskUrl(String(value)) : '***'
}

function assemble(values: ReadonlyMap<string, unknown>, sources: Sources): Config {
  const all: Record<string, unknown> = {}
  for (const [key, value] of values) {
    if (/^(retention|archive)\./.test(key)) continue
    const [first = '', second] = key.split('.')
    if (second === undefined) all[first] = value
    else all[first] = { ...(all[first] as object), [second]: value }
  }
  const config = all as unknown as Config
  const { workspace, databaseUrl, searchDatabaseUrl } = config
  const base = sources.folder ?? process.cwd()
  return Object.freeze({
    ...config,
    searchDatabaseUrl: searchDatabaseUrl || databaseUrl,
    workspace: Object.freeze({ ...workspace, folder: resolve(base, workspace.folder) }),
    limits: Object.freeze(config.limits),
    retention: retentionOf((key) => values.get(key), base),
    development: false,
    outbox: true,
  })
}
