// The bin as people run it: real processes of the built package. Data on stdout, words on stderr.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { rejected } from '../../src/sinks/sink.ts'
import { docs, type Stage, stage } from '../desk/stage.ts'

const db = useDatabase()
const bin = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hermod-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Ended = { code: number | null; out: string; err: string }

function start(args: string[], env: Record<string, string> = {}) {
  const { DATABASE_URL: _, NO_COLOR: __, ...clean } = process.env
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder, env: { ...clean, ...env } })
  const ended: Ended = { code: null, out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    ended.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    ended.err += chunk
  })
  const end = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ ...ended, code })))
  return { child, ended, end }
}

/** Each starts processes of its own: generous on a machine that others use too. */
const slow = { timeout: 60_000 }

const hermod = (args: string[], env = {}) => start(args, env).end
const onDb = (...args: string[]) => hermod(args, { DATABASE_URL: db.url, USER: 'ada' })

describe('without a database', () => {
  it('help: examples first, on stdout, for every command', async () => {
    const all = await hermod([])
    expect(all).toMatchObject({ code: 0, err: '' })
    const names = [...all.out.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map((match) => match[1])
    // Where the server is installed, its commands follow.
    for (const name of [
      'migrate',
      'work',
      'status',
      'doctor',
      'rebase',
      'dead',
      'rebuild',
      'verify',
      'backfill',
      'help',
      'version',
    ]) {
      expect(names).toContain(name)
    }
    const some = await Promise.all(['dead', 'migrate', 'work'].map((name) => hermod(['help', name])))
    for (const { out } of some) expect(out).toMatch(/^ {2}\$ hermod /)
    expect((await hermod(['dead', '--help'])).out).toBe(some[0]?.out)
  })

  it('wrong usage is 2 and suggests the nearest', async () => {
    const ended = await Promise.all([
      hermod(['statsu']),
      hermod(['status', '--jsn']),
      hermod(['migrate', '--lanes']),
      hermod(['dead', 'burn'], { DATABASE_URL: 'postgres://x' }),
      hermod(['work', '--config', 'nowhere.mjs']),
    ])
    expect(ended.map(({ code, out }) => [code, out])).toEqual(ended.map(() => [2, '']))
    expect(ended[0]?.err).toMatch(/did you mean status\?/)
    expect(ended[1]?.err).toMatch(/did you mean --json\?/)
    expect(ended[4]?.err).toMatch(/nowhere\.mjs/)
  })

  it('a missing DATABASE_URL is named, a bad one printed with its password masked; --json errors are JSON', async () => {
    const [missing, bad, json] = await Promise.all([
      hermod(['status']),
      hermod(['status'], { DATABASE_URL: 'postgres://ada:s3cr3t@127.0.0.1:1/x' }),
      hermod(['status', '--json', '--url', 'postgres://ada:s3cr3t@127.0.0.1:1/x?password=s3cr3t']),
    ])
    expect(missing).toMatchObject({ code: 1, out: '' })
    expect(missing?.err).toMatch(/DATABASE_URL/)
    expect(bad?.code).toBe(1)
    expect(bad?.err).toMatch(/ada:\*\*\*@127\.0\.0\.1:1/)
    const { error } = JSON.parse(json?.err ?? '')
    expect(error).toMatchObject({ code: 'HMD_DATABASE_UNREACHABLE' })
    expect(`${bad?.err}${json?.err}`).not.toContain('s3cr3t')
  })

  it('version, and SQL that somebody else may run', async () => {
    const [version, sql] = await Promise.all([hermod(['--version']), hermod(['migrate', '--sql'])])
    expect(version?.out).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(sql?.out).toMatch(/^-- 0001_tables\nbegin;/)
  })

  it('a closed pipe ends quietly', async () => {
    const { child, end } = start(['migrate', '--sql'])
    child.stdout.destroy()
    expect(await end).toMatchObject({ code: 0, err: '' })
  })
})

describe('with a database', slow, () => {
  let s: Stage
  beforeAll(async () => {
    s = await stage(db, {
      search: {
        answer: ({ aggregateId }) =>
          aggregateId === 'fine' ? undefined : rejected({ code: 'bad', message: 'field "x" is wrong' }),
      },
    })
  })

  it('migrate says what is missing, applies it once; status names migrate where it is needed', async () => {
    const name = `${db.name}_cli`
    await db.admin.query(`create database ${name} template template0`)
    const url = new URL(db.url)
    url.pathname = `/${name}`
    const on = (...args: string[]) => hermod([...args, '--url', url.href])
    try {
      const before = await on('status')
      expect(before.code).toBe(1)
      expect(before.err).toMatch(/hermod migrate/)
      const dry = await on('migrate', '--dry-run', '--json')
      expect(JSON.parse(dry.out).missing[0]).toBe('0001_tables')
      const first = await on('migrate', '--lanes', '4')
      expect(first.code).toBe(0)
      expect(first.out).toMatch(/0001_tables\n/)
      expect(await on('migrate')).toMatchObject({ code: 0, out: '' })
      expect((await on('migrate', '--lanes', '300')).code).toBe(2)
      expect((await on('status')).code).toBe(0)
    } finally {
      await db.admin.query(`drop database ${name} with (force)`)
    }
  })

  it('status: 0 when all is well, 1 when a person should act', async () => {
    await s.emit(...docs('fine'))
    await s.work()
    const good = await onDb('status')
    expect(good).toMatchObject({ code: 0, err: '' })
    expect(good.out).toMatch(/^All 1 subscriptions are keeping up/)
    await s.emit(...docs('poor', 'worse'))
    await s.work()
    const bad = await onDb('status', '--json')
    expect(bad.code).toBe(1)
    const found = JSON.parse(bad.out)
    expect(found.needs).toMatchObject([{ subscription: 'search', says: 'search has 2 dead letters' }])
    expect(found.subscriptions[0]).toMatchObject({ name: 'search', dead: 2, delivered: 1 })
  })

  it('dead: groups, list, show; retry and discard with a count, a reason and --yes', async () => {
    const groups = JSON.parse((await onDb('dead', 'groups', '--json')).out).groups
    expect(groups).toMatchObject([{ subscription: 'search', count: 2, code: 'bad' }])
    const { group, samplePosition } = groups[0]
    const lines = (await onDb('dead', 'list', '--plain', '--quiet')).out.trim().split('\n')
    expect(lines.map((line) => line.split('\t')[1])).toEqual(['subscription', 'search', 'search'])
    expect((await onDb('dead', 'show', samplePosition)).out).toMatch(/document\/worse[\s\S]*search +dead/)
    const dry = await onDb('dead', 'retry', 'search', '--group', group, '--dry-run', '--json')
    expect(JSON.parse(dry.out)).toMatchObject({ matching: 2, retried: 0 })
    expect(await onDb('dead', 'discard', 'search', '--group', group, '--reason', 'x')).toMatchObject({
      code: 2,
      out: '',
    })
    expect((await onDb('dead', 'discard', 'search', '--group', group, '--yes')).err).toMatch(/--reason/)
    const one = await onDb('dead', 'retry', 'search', samplePosition, '--json')
    expect(JSON.parse(one.out)).toMatchObject({ retried: 1 })
    const rest = await onDb('dead', 'discard', 'search', '--all', '--reason', 'test data', '--yes')
    expect(rest.out).toMatch(/^discarded\t1$/m)
    expect(await db.query('select actor, action, reason, count from outbox.audit order by id')).toEqual([
      { actor: 'cli:ada', action: 'retry', reason: null, count: '1' },
      { actor: 'cli:ada', action: 'discard', reason: 'test data', count: '1' },
    ])
    expect((await onDb('dead', 'retry', 'search', '999999')).err).toMatch(/HMD_DELIVERY_UNKNOWN/)
  })

  it('doctor: named checks, each with what to do', async () => {
    const { code, out } = await onDb('doctor', '--json')
    const { ok, checks } = JSON.parse(out)
    expect(checks.map(({ name }: { name: string }) => name)).toContain('migrations')
    expect(code).toBe(ok ? 0 : 1)
  })

  it('rebase without a terminal needs --yes', async () => {
    expect(await onDb('rebase')).toMatchObject({ code: 2, out: '' })
  })

  const engine = new URL('../../dist/index.js', import.meta.url).href
  const driver = import.meta.resolve('pg')
  const config = (name: string, sink: string) =>
    writeFileSync(
      join(folder, `${name}.mjs`),
      `import pg from ${JSON.stringify(driver)}
       import { createOutbox } from ${JSON.stringify(engine)}
       export default () => {
         const outbox = createOutbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
         return outbox.subscribe('${name}', { revision: 1, types: ['*'], sink: ${sink} })
       }`,
    )

  it('work: serves the config module, stops politely on SIGTERM', async () => {
    config(
      'hermod.config',
      'async (events) => { for (const event of events) console.log(event.type, event.aggregateId) }',
    )
    const { child, ended, end } = start(['work'], { DATABASE_URL: db.url })
    await eventually(() => ended.err.includes('Working as'), { what: 'the worker to start' })
    await s.emit(...docs('printed'))
    await eventually(() => ended.out.includes('document.updated printed'), { what: 'the delivery' })
    child.kill('SIGTERM')
    const { code, err } = await end
    expect(err).toMatch(/Stopped\.\n$/)
    expect(code).toBe(0)
    expect(await db.query('select 1 from outbox.lane where owner is not null')).toEqual([])
  })

  it('work: the second signal leaves at once', async () => {
    config('stuck', '() => { console.log("called"); return new Promise(() => {}) }')
    const { child, ended, end } = start(['work', '--config', 'stuck.mjs'], { DATABASE_URL: db.url })
    await eventually(() => ended.err.includes('Working as'), { what: 'the worker to start' })
    await s.emit(...docs('stuck'))
    await eventually(() => ended.out.includes('called'), { what: 'the call' })
    child.kill('SIGINT')
    await eventually(() => ended.err.includes('Stopping'), { what: 'the polite stop' })
    child.kill('SIGINT')
    expect((await end).code).toBe(130)
  })
})
