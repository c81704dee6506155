// Where a setting comes from, who wins, and that everything wrong is said at once.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HermodError } from 'hermod'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { inspectConfig, readConfig, type Sources } from '../../src/read-config.ts'
import { settings } from '../../src/settings.ts'

const secret = 'x'.repeat(32)
const databaseUrl = 'postgres://ada:pa55word@db.example.org/hermod'
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hermod-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const put = (name: string, text: string) => writeFileSync(join(folder, name), text)
const enough = { DATABASE_URL: databaseUrl, HERMOD_SECRET: secret }
const read = (env: Record<string, string> = {}, more: Sources = {}) =>
  readConfig({ folder, env: { ...enough, ...env }, ...more })

function problemsOf(env: Record<string, string>, more: Sources = {}): string[] {
  try {
    readConfig({ folder, env, ...more })
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(HermodError)
    const { message, code } = error as HermodError
    expect(code).toBe('HMD_OPTION_INVALID')
    expect(message).not.toContain('pa55word')
    return message.split('\n').slice(1)
  }
}

describe('precedence', () => {
  it('flags over environment over .env over hermod.toml over defaults, and each origin is kept', () => {
    put('hermod.toml', 'port = 1001\nhost = "10.0.0.1"\nauditIp = "none"\n[limits]\nperMinute = 7\n')
    put('.env', 'HERMOD_PORT=1002\nHERMOD_HOST=10.0.0.2\nHERMOD_AUDIT_IP="full"\n')
    const env = { ...enough, HERMOD_PORT: '1003', HERMOD_HOST: '10.0.0.3' }
    const { config, entries } = inspectConfig({ folder, env, flags: { port: '1004' } })
    expect(config).toMatchObject({ port: 1004, host: '10.0.0.3', auditIp: 'full' })
    expect(config?.limits).toMatchObject({ perMinute: 7, bodyBytes: 1_048_576 })
    const origins = Object.fromEntries(entries.map(({ key, origin }) => [key, origin]))
    expect(origins).toMatchObject({
      port: '--port',
      host: 'HERMOD_HOST',
      auditIp: '.env HERMOD_AUDIT_IP',
      'limits.perMinute': 'hermod.toml',
      'limits.bodyBytes': 'default',
    })
  })

  it('search lives in the database of everything else unless told otherwise', () => {
    expect(read().searchDatabaseUrl).toBe(databaseUrl)
    const other = 'postgres://elsewhere/search'
    expect(read({ HERMOD_SEARCH_DATABASE_URL: other }).searchDatabaseUrl).toBe(other)
  })

  it('an empty variable counts as none, and nothing from outside turns development on', () => {
    const config = read({ HERMOD_PORT: '', HERMOD_DEVELOPMENT: 'true' })
    expect(config).toMatchObject({ port: 4400, development: false, outbox: true })
    expect(Object.isFrozen(config)).toBe(true)
  })

  it('a worker needs no secret', () => {
    const env = { DATABASE_URL: databaseUrl }
    expect(readConfig({ folder, env, secretNeeded: false }).secret).toHaveLength(64)
  })
})

describe('problems', () => {
  it('all at once, each with its field, origin, bound and an example', () => {
    put('hermod.toml', 'prot = 1\nlogLevel = "loud"\n[limits]\nperMinutes = 1\nbodyBytes = -1\n')
    put('.env', 'HERMOD_TRUST_PROXY=maybe\n')
    const env = {
      HERMOD_PORT: 'http',
      HERMOD_SECRET: 'short',
      HERMOD_HOTS: 'x',
      HERMOD_THEIRS: 'y',
    }
    expect(problemsOf(env)).toEqual([
      '  HERMOD_HOTS (environment) is not a setting; did you mean HERMOD_HOST?',
      '  prot (hermod.toml) is not a setting; did you mean port?',
      '  limits.perMinutes (hermod.toml) is not a setting; did you mean limits.perMinute?',
      '  databaseUrl (nowhere) is missing. Set DATABASE_URL, for example postgres://user:password@host:5432/hermod',
      '  port (HERMOD_PORT) must be a whole number from 0 to 65535 (got "http"). For example: 4400',
      '  secret (HERMOD_SECRET) must have at least 32 bytes (got 5). For example: the output of: openssl rand -hex 32',
      '  trustProxy (.env HERMOD_TRUST_PROXY) must be false, the number of your proxies in front (1 to 10), or their addresses and networks, separated by commas (got "maybe"). For example: 1',
      '  limits.bodyBytes (hermod.toml) must be a whole number from 1024 to 1073741824 (got -1). For example: 1048576',
      '  logLevel (hermod.toml) must be one of fatal, error, warn, info, debug, trace, silent (got "loud"). For example: info',
    ])
  })

  it('a file that is no TOML is named by line and column, without the line itself', () => {
    put('hermod.toml', `port = 1\nsecret = "pa55word\n`)
    const [only, ...rest] = problemsOf(enough)
    expect(only).toMatch(/^ {2}hermod\.toml \(hermod\.toml\) is not TOML at line 2, column \d+: /)
    expect(rest).toEqual([])
  })

  it('a named file must be there', () => {
    expect(problemsOf(enough, { file: 'other.toml' })).toEqual(['  --config (other.toml) is not there'])
  })

  it('an address that is none of PostgreSQL is refused without being shown', () => {
    const [only] = problemsOf({ ...enough, DATABASE_URL: 'mysql://ada:pa55word@host/db' })
    expect(only).toContain('databaseUrl (DATABASE_URL) must be a URL that starts with postgres://')
  })
})

describe('issuers', () => {
  const google = {
    name: 'google',
    issuer: 'https://accounts.google.com',
    audience: 'hermod',
    jwksUri: 'https://www.googleapis.com/oauth2/v3/certs',
  }

  it('come as tables of the project file, or as JSON', () => {
    const json = JSON.stringify([google])
    const [first] = read({ HERMOD_ISSUERS: json }).issuers
    expect(first).toEqual({ ...google, algorithms: ['RS256'], trustedDomains: [] })
    const lines = Object.entries(google).map(([key, value]) => `${key} = "${value}"`)
    put('hermod.toml', `[[issuers]]\n${lines.join('\n')}\n`)
    expect(read().issuers).toEqual([first])
  })

  it('are refused with every reason', () => {
    const wrong = {
      ...google,
      name: 'Google',
      jwksUri: 'http://keys.example.org',
      audiences: 'x',
      algorithms: ['none'],
      roles: { boss: 'root' },
    }
    const [says = '', ...rest] = problemsOf({
      ...enough,
      HERMOD_ISSUERS: JSON.stringify([wrong, google, google]),
    })
    expect(rest).toEqual([])
    expect(says).toContain('[0].audiences is not known; did you mean audience?')
    expect(says).toContain('[0].name must be a lower-case name like google')
    expect(says).toContain('[0].jwksUri must be an https:// address')
    expect(says).toContain('[0].algorithms must be some of RS256')
    expect(says).toContain('[0].roles must be a table of reader, editor, operator, admin')
    expect(says).toContain('google is there twice')
  })
})

describe('retention', () => {
  const bucket = {
    HERMOD_ARCHIVE_ENDPOINT: 'https://s3.example.org',
    HERMOD_ARCHIVE_BUCKET: 'cold',
    HERMOD_ARCHIVE_ACCESS_KEY_ID: 'key',
    HERMOD_ARCHIVE_SECRET_ACCESS_KEY: 'pa55word',
  }

  it('has the days of the engine and no archive unless told otherwise', () => {
    expect(read().retention).toEqual({ eventDays: 7, attemptDays: 7, deliveryDays: 30, keyDays: 7 })
    put('hermod.toml', '[retention]\neventDays = 0.5\n[archive]\nfolder = "cold"\n')
    expect(read({ HERMOD_RETENTION_DELIVERY_DAYS: '90' }).retention).toEqual({
      eventDays: 0.5,
      attemptDays: 7,
      deliveryDays: 90,
      keyDays: 7,
      archive: { folder: join(folder, 'cold') },
    })
  })

  it('archives into a bucket, whose secret is masked', () => {
    expect(read(bucket).retention.archive?.s3).toEqual({
      endpoint: 'https://s3.example.org',
      bucket: 'cold',
      region: 'us-east-1',
      accessKeyId: 'key',
      secretAccessKey: 'pa55word',
      prefix: '',
    })
    const { entries } = inspectConfig({ folder, env: { ...enough, ...bucket } })
    expect(JSON.stringify(entries)).not.toContain('pa55word')
  })

  it('is refused where it is nonsense, or half of it is missing', () => {
    const two = { ...enough, ...bucket, HERMOD_ARCHIVE_FOLDER: 'cold', HERMOD_RETENTION_EVENT_DAYS: '-1' }
    expect(problemsOf(two)).toEqual([
      '  retention.eventDays (HERMOD_RETENTION_EVENT_DAYS) must be a number of days from 0 to 3650 (got "-1"). For example: 7',
      '  archive.folder (HERMOD_ARCHIVE_FOLDER) and a bucket are both given. Give one of them',
    ])
    expect(problemsOf({ ...enough, HERMOD_ARCHIVE_BUCKET: 'cold', HERMOD_ARCHIVE_ENDPOINT: 'http://x' })).toEqual([
      '  archive.accessKeyId (default) is missing. A bucket needs archive.accessKeyId and archive.secretAccessKey too',
    ])
  })
})

describe('what is shown', () => {
  it('masks secrets and passwords', () => {
    const { entries } = inspectConfig({ folder, env: enough })
    const shown = Object.fromEntries(entries.map((entry) => [entry.key, entry.shown]))
    expect(shown).toMatchObject({
      secret: '***',
      databaseUrl: 'postgres://ada:***@db.example.org/hermod',
      port: '4400',
    })
    expect(JSON.stringify(entries)).not.toMatch(/pa55word|xxxx/)
  })

  it('docs/operations/deploy.md lists exactly these settings', () => {
    const page = new URL('../../../../docs/operations/deploy.md', import.meta.url)
    const rows = readFileSync(page, 'utf8').match(/^\| `[A-Z_]+` \|.*$/gm)
    expect(rows).toEqual(
      settings.map(({ variables, key, fallback, says }) => {
        const usual = fallback === undefined ? 'needed' : `\`${JSON.stringify(fallback)}\``
        return `| \`${variables[0]}\` | \`${key}\` | ${usual} | ${says} |`
      }),
    )
  })
})
