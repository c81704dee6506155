// Creates, configures and copies PostgreSQL data directories. A directory belongs to the account
// that runs the server and is always one that this account can reach.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type Account, canReach } from './account.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedError } from './errors.ts'

export type Settings = Readonly<Record<string, string>>

const base: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  max_prepared_transactions: '10',
  wal_level: 'replica',
  // A standby started before its primary asks again at once, not after 5 s.
  wal_retrieve_retry_interval: '100ms',
  timezone: 'UTC',
  log_timezone: 'UTC',
  dynamic_shared_memory_type: process.platform === 'win32' ? 'windows' : 'mmap',
}

const fast: Settings = { fsync: 'off', full_page_writes: 'off' }

/** An empty directory owned by the account: `wanted`, or a new temporary one. */
export async function makeDirectory(wanted: string | undefined, account: Account | undefined): Promise<string> {
  const path = wanted === undefined ? await temporary(account) : persistent(wanted, account)
  await mkdir(path, { recursive: true })
  if (!existsSync(join(path, 'PG_VERSION'))) await ownDirectory(path, account)
  return path
}

async function temporary(account: Account | undefined): Promise<string> {
  const folder = [tmpdir(), '/tmp', '/var/tmp'].find((path) => canReach(path, account))
  return mkdtemp(join(folder ?? tmpdir(), 'hermod-pg-'))
}

/**
 * The wanted path, unless root asks for a place the unprivileged account cannot reach (a clone
 * below /root): then a folder of the same identity in /var/tmp, which survives a restart.
 */
function persistent(wanted: string, account: Account | undefined): string {
  const path = resolve(wanted)
  if (!account || canReach(nearestExisting(dirname(path)), account)) return path
  const name = createHash('sha256').update(path).digest('hex').slice(0, 12)
  return `/var/tmp/hermod-data-${name}`
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}

async function ownDirectory(path: string, account: Account | undefined): Promise<void> {
  await chmod(path, 0o700)
  if (account) await chown(path, account.uid, account.gid)
}

export async function initialize(dataDir: string, binaries: Binaries, account: Account | undefined): Promise<void> {
  const { code, output } = await runInitdb(dataDir, binaries, account)
  if (code !== 0) {
    throw new EmbeddedError('HMD_EMBEDDED_INITDB', `initdb failed in ${dataDir}:\n${output}`)
  }
  await appendFile(join(dataDir, 'postgresql.conf'), "\ninclude_if_exists = 'hermod.conf'\n")
}

function runInitdb(dataDir: string, binaries: Binaries, account: Account | undefined) {
  const args = ['-D', dataDir, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C']
  const child = spawn(binaries.initdb, [...args, ...caseFolding(binaries), '--no-sync'], spawnOptions(account))
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        output += chunk
      })
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** Sorted by bytes everywhere, but `lower('Ü')` is 'ü'. Before PostgreSQL 17 the operating system has to know how. */
function caseFolding({ major }: Binaries): string[] {
  if (major >= 17) return ['--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  return process.platform === 'linux' ? ['--lc-ctype=C.UTF-8'] : []
}

/** Both programs start from `/` (the current folder may be closed to the account). */
export function spawnOptions(account: Account | undefined) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('PG') && name !== 'HOME'),
  )
  return {
    cwd: process.platform === 'win32' ? dirname(process.execPath) : '/',
    env: { ...env, LC_ALL: 'C', TZ: 'UTC' },
    ...(account ? { uid: account.uid, gid: account.gid } : {}),
  }
}

/** In a file and not on the command line, so that ALTER SYSTEM still has the last word. */
export async function writeSettings(dataDir: string, options: { durable: boolean; settings: Settings }): Promise<void> {
  const all = { ...base, ...(options.durable ? {} : fast), ...options.settings }
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${quote(value)}'\n`)
  await writeFile(join(dataDir, 'hermod.conf'), lines.join(''))
}

function quote(value: string): string {
  return value.replaceAll("'", "''")
}

/** Copies a stopped cluster; with `primaryUrl` the copy starts as a standby of that server. */
export async function copyDirectory(
  from: string,
  to: string,
  account: Account | undefined,
  primaryUrl: string | undefined,
): Promise<void> {
  const skipped = new Set(['postmaster.pid', 'postgres.log', 'hermod.owner'].map((f) => join(from, f)))
  await cp(from, to, { recursive: true, filter: (path) => !skipped.has(path) })
  if (primaryUrl !== undefined) await followPrimary(to, primaryUrl)
  await ownTree(to, account)
}

async function followPrimary(dataDir: string, primaryUrl: string): Promise<void> {
  await writeFile(join(dataDir, 'standby.signal'), '')
  const line = `primary_conninfo = '${quote(primaryUrl)}'\n`
  await appendFile(join(dataDir, 'postgresql.auto.conf'), line)
}

async function ownTree(path: string, account: Account | undefined): Promise<void> {
  await ownDirectory(path, account)
  if (!account) return
  for (const name of await readdir(path, { recursive: true })) {
    await chown(join(path, name), account.uid, account.gid)
  }
}

export async function logSize(dataDir: string): Promise<number> {
  return (await readLog(dataDir)).length
}

/** The last lines written after `from`: what an earlier start said would mislead. */
export async function logTail(dataDir: string, from: number, linesMax = 20): Promise<string> {
  const text = (await readLog(dataDir)).slice(from)
  return text.trimEnd().split('\n').slice(-linesMax).join('\n')
}

function readLog(dataDir: string): Promise<string> {
  return readFile(join(dataDir, 'postgres.log'), 'utf8').catch(() => '')
}

export async function removeDirectory(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
}
