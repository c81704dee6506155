// The server's commands as people run them: real processes of the built packages.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'

const db = useDatabase({ empty: true })
const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hermod-server-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const secret = 's3cr3t-'.repeat(6)

function start(args: string[], env: Record<string, string> = {}) {
  const clean = Object.entries(process.env).filter(([name]) => !/^(HERMOD_|DATABASE_URL)/.test(name))
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env: { ...Object.fromEntries(clean), ...env },
  })
  const ended = { code: null as number | null, out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    ended.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    ended.err += chunk
  })
  const end = new Promise<typeof ended>((resolve) => child.on('close', (code) => resolve({ ...ended, code })))
  return { child, ended, end }
}

const hermod = (args: string[], env = {}) => start(args, env).end
const withAll = () => ({ DATABASE_URL: db.url, HERMOD_SECRET: secret })
const slow = { timeout: 60_000 }

describe('the frame', slow, () => {
  it('help names the server’s commands beside the engine’s; wrong usage is exit 2', async () => {
    const [help, serve, wrong, nearly, verb] = await Promise.all([
      hermod(['help']),
      hermod(['help', 'serve']),
      hermod(['serve', '--prot', '1']),
      hermod(['serv']),
      hermod(['config', 'shw']),
    ])
    expect(help.out).toMatch(/^ {2}migrate .*\n(.*\n)*^ {2}serve /m)
    expect(serve.out).toMatch(/^ {2}\$ hermod serve\n/)
    expect(wrong).toMatchObject({ code: 2, out: '' })
    expect(wrong.err).toContain('did you mean --port?')
    expect(nearly).toMatchObject({ code: 2 })
    expect(nearly.err).toContain('did you mean serve?')
    expect(verb.err).toContain('did you mean show?')
    expect(verb.code).toBe(2)
  })

  it('config: everything wrong at once, as JSON too; secrets stay masked', async () => {
    const bad = { HERMOD_PORT: 'x', HERMOD_SECRET: 'short' }
    const [refused, json, shown, checked] = await Promise.all([
      hermod(['config', 'check'], bad),
      hermod(['config', 'check', '--json'], bad),
      hermod(['config', 'show', '--json'], withAll()),
      hermod(['config', 'check'], withAll()),
    ])
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toMatch(/3 problems in the configuration\n {2}databaseUrl .*\n {2}port .*\n/)
    const { error } = JSON.parse(json.err)
    expect(error.code).toBe('HMD_OPTION_INVALID')
    expect(error.details.problems.map(({ key }: { key: string }) => key)).toEqual([
      ...['databaseUrl', 'port', 'secret'],
    ])
    const found = JSON.parse(shown.out).settings.find(({ key }: { key: string }) => key === 'secret')
    expect(found).toMatchObject({ value: '***', origin: 'HERMOD_SECRET' })
    expect(shown.out).not.toContain('s3cr3t')
    expect(checked).toMatchObject({ code: 0, err: '' })
  })
})

describe('a server and a worker of their own', slow, () => {
  it('serve refuses a database without a schema; migrate brings both; then it serves and stops', async () => {
    const early = await hermod(['serve', '--port', '0'], withAll())
    expect(early.code).toBe(1)
    expect(early.err).toContain('HMD_MIGRATION_NEEDED')

    const migrated = await hermod(['migrate'], withAll())
    expect(migrated.code).toBe(0)
    expect(migrated.out).toMatch(/^0001_tables\n(.*\n)*hermod\/0001_people\n/)
    expect(await hermod(['migrate', '--dry-run', '--json'], withAll())).toMatchObject({
      code: 0,
      out: '{\n  "missing": []\n}\n',
    })

    const serving = start(['serve', '--port', '0'], { ...withAll(), HERMOD_LOG_LEVEL: 'debug' })
    const working = start(['work', '--name', 'cli'], withAll())
    const lines = () =>
      serving.ended.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    const started = await eventually(() => lines().find(({ code }) => code === 'server.started') ?? false, {
      timeoutMs: 20_000,
      what: 'the server to listen',
    })
    expect(started).toMatchObject({ level: 'info', service: 'hermod-server', msg: 'listening' })
    const effective = lines().filter(({ code }) => code === 'config')
    expect(effective).toContainEqual(expect.objectContaining({ key: 'secret', value: '***', origin: 'HERMOD_SECRET' }))
    expect((await fetch(`${started.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${started.url}/readyz`)).status).toBe(200)
    const about = await (await fetch(`${started.url}/api/v2/about`)).json()
    expect(about).toMatchObject({ name: 'hermod', development: false, people: [] })

    await eventually(() => working.ended.err.includes('Working as cli'), {
      timeoutMs: 20_000,
      what: 'the worker to start',
    })
    const names = await db.query('select name from outbox.subscription order by name')
    expect(names.map(({ name }) => name)).toContain('search-documents')

    serving.child.kill('SIGTERM')
    working.child.kill('SIGTERM')
    const [served, worked] = await Promise.all([serving.end, working.end])
    expect(served).toMatchObject({ code: 0, err: '' })
    expect(served.out).toContain('server.stopped')
    expect(worked.code).toBe(0)
    expect(`${served.out}${worked.out}${worked.err}`).not.toContain('s3cr3t')
  })

  it('work keeps what the settings say, and archives it first', async () => {
    const archive = join(folder, 'archive')
    const settings = { HERMOD_RETENTION_EVENT_DAYS: '0', HERMOD_ARCHIVE_FOLDER: 'archive' }
    await db.query(`select outbox.emit('thing.happened', 'thing', 'archived', '{}')`)
    const working = start(['work'], { ...withAll(), ...settings })
    const archived = () => existsSync(archive) && readdirSync(archive).length > 0
    const left = async () => (await db.query(`select from outbox.event where aggregate_id = 'archived'`)).length
    await eventually(
      async () => {
        // Its turn comes at the next look, not in a minute.
        await db.query(`delete from outbox.upkeep where piece = 'trim'`)
        return archived() && (await left()) === 0
      },
      { timeoutMs: 45_000, everyMs: 500, what: 'the event to be archived and removed' },
    )
    working.child.kill('SIGTERM')
    expect((await working.end).code).toBe(0)
  })
})
