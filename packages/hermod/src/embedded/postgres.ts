// Real PostgreSQL clusters from the npm package, for tests and for `npm start`: loopback only, no
// password, never for production. What is started here ends with this process.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unprivilegedAccount } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import {
  copyDirectory,
  initialize,
  makeDirectory,
  removeDirectory,
  type Settings,
  writeSettings,
} from './data-directory.ts'
import { EmbeddedError } from './errors.ts'
import { assertLoopback, freePort } from './probe.ts'
import { Server, type StopMode } from './server.ts'

export type StartOptions = {
  /** Major version, for example `'18'`; default: the installed one. */
  readonly version?: string
  /** Keep the data here and resume it if present; default: a temporary folder, deleted at exit. */
  readonly dataDir?: string
  /** Default: a free one. */
  readonly port?: number
  /** True: survives a crash of the machine (fsync, full_page_writes). Default false, for speed. */
  readonly durable?: boolean
  /** More settings of postgresql.conf. */
  readonly settings?: Settings
  /** How long to wait until it accepts connections; default 60,000. */
  readonly startMs?: number
}

export type CopyOptions = {
  /** Make the copy a standby that follows this server. */
  readonly standby?: { readonly primaryUrl: string }
  readonly dataDir?: string
  readonly port?: number
  readonly durable?: boolean
  readonly settings?: Settings
}

export type Postgres = {
  readonly port: number
  readonly dataDir: string
  readonly version: string
  /** Of the running server; undefined while stopped. */
  readonly pid: number | undefined
  readonly running: boolean
  /** Connection URL of a database (default `postgres`) as the superuser `postgres`. */
  url(database?: string): string
  /** Starts again after `stop`: same data, same port. */
  start(): Promise<void>
  /** Default `'fast'`. `'immediate'` is a crash: the next start recovers from the log. */
  stop(mode?: StopMode): Promise<void>
  /** Do not delete the data directory at exit, although it is a temporary one. */
  keep(): void
  /** Stops and deletes the data directory. */
  destroy(): Promise<void>
}

export async function startPostgres(options: StartOptions = {}): Promise<Postgres> {
  await assertLoopback()
  const account = unprivilegedAccount()
  const binaries = await findBinaries(options.version, account)
  const dataDir = await makeDirectory(options.dataDir, account)
  return open(dataDir, binaries, options, () =>
    existsSync(join(dataDir, 'PG_VERSION'))
      ? assertSameMajor(dataDir, binaries)
      : initialize(dataDir, binaries, account),
  )
}

/** Copies a stopped cluster and starts the copy. */
export async function copyCluster(stopped: Postgres, options: CopyOptions = {}): Promise<Postgres> {
  if (stopped.running) {
    throw new EmbeddedError(
      'HMD_EMBEDDED_RUNNING',
      `The cluster in ${stopped.dataDir} is running; stop it before copying it.`,
    )
  }
  const account = unprivilegedAccount()
  const binaries = await findBinaries(String(Number.parseInt(stopped.version, 10)), account)
  const dataDir = await makeDirectory(options.dataDir, account)
  return open(dataDir, binaries, options, () =>
    copyDirectory(stopped.dataDir, dataDir, account, options.standby?.primaryUrl),
  )
}

async function assertSameMajor(dataDir: string, binaries: Binaries): Promise<void> {
  const found = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim()
  if (found === String(binaries.major)) return
  throw new EmbeddedError(
    'HMD_EMBEDDED_VERSION',
    `${dataDir} was made by PostgreSQL ${found}, the installed one is ${binaries.version}. ` +
      'Choose another folder or delete this one.',
  )
}

async function open(
  dataDir: string,
  binaries: Binaries,
  options: StartOptions & CopyOptions,
  fill: () => Promise<void>,
): Promise<Postgres> {
  const { durable = false, settings = {}, startMs = 60_000 } = options
  const ephemeral = options.dataDir === undefined
  // Before the directory is filled: if we are killed meanwhile, it is deleted all the same.
  const server = new Server({
    binaries,
    account: unprivilegedAccount(),
    dataDir,
    ephemeral,
    startMs,
  })
  try {
    await fill()
    await writeSettings(dataDir, { durable, settings })
    const port = await startOnPort(server, options.port)
    return cluster(server, dataDir, binaries.version, port)
  } catch (error) {
    await server.release()
    if (ephemeral) await removeDirectory(dataDir)
    throw error
  }
}

/** A free port can be taken between asking and using: ask again, but never move a wanted port. */
async function startOnPort(server: Server, wanted: number | undefined): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = wanted ?? (await freePort())
    try {
      await server.start(port)
      return port
    } catch (error) {
      const taken = error instanceof Error && /Address already in use/.test(error.message)
      if (!taken || wanted !== undefined || attempt === 5) throw error
    }
  }
}

function cluster(server: Server, dataDir: string, version: string, port: number): Postgres {
  return Object.freeze({
    port,
    dataDir,
    version,
    get pid() {
      return server.pid
    },
    get running() {
      return server.pid !== undefined
    },
    url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    start: () => server.start(port),
    stop: (mode: StopMode = 'fast') => server.stop(mode),
    keep: () => server.keep(),
    async destroy() {
      await server.release()
      await removeDirectory(dataDir)
    },
  })
}
