/**
 * What `npm start` keeps, in one folder: the database, the files of documents, the secret, the header
 * for curl. A first start that was interrupted is started again from nothing.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Postgres, startPostgres } from 'hermod/embedded'
import { isFree } from './free-port.ts'
import type { DevOptions } from './options.ts'

const usualDatabasePort = 54321
/** Everything we ever put there; nothing else is deleted. */
const ours = ['ready', 'postgres', 'documents', 'secret', 'header', 'demo.json', 'demo.json.new']

export interface DataFolder {
  readonly path: string
  /** True for a new folder. */
  readonly fresh: boolean
  readonly postgres: Postgres
  readonly documents: string
  readonly secret: string
  /** Holds one header line, for `curl -H @file`. */
  readonly headerFile: string
  /** What the demo wrote. */
  readonly demoFile: string
  /** Stops the database; deletes everything where nothing is kept. */
  close(): Promise<void>
}

export async function openDataFolder(options: DevOptions): Promise<DataFolder> {
  const { ephemeral, reset } = options
  const path = ephemeral ? await mkdtemp(join(tmpdir(), 'hermod-dev-')) : resolve(options.data)
  const ready = join(path, 'ready')
  const database = join(path, 'postgres')
  if (reset || !existsSync(ready)) {
    await deleteAll(path, existsSync(ready) ? await readFile(ready, 'utf8') : database)
  }
  const fresh = !existsSync(ready)
  await mkdir(path, { recursive: true })
  await mkdir(join(path, 'documents'), { recursive: true, mode: 0o700 })
  const port = (await isFree(usualDatabasePort)) ? usualDatabasePort : undefined
  const postgres = await startPostgres({
    durable: !ephemeral,
    ...(port !== undefined && { port }),
    ...(!ephemeral && { dataDir: database }),
  })
  // Its real place: if the account that runs PostgreSQL cannot reach root's folder, it is elsewhere.
  await writeFile(ready, postgres.dataDir)
  return {
    path,
    fresh,
    postgres,
    documents: join(path, 'documents'),
    secret: await keptSecret(join(path, 'secret')),
    headerFile: join(path, 'header'),
    demoFile: join(path, 'demo.json'),
    close: async () => {
      if (!ephemeral) return postgres.stop()
      await postgres.destroy()
      await rm(path, { recursive: true, force: true })
    },
  }
}

/** A server that still runs in there is stopped first. */
async function deleteAll(path: string, database: string): Promise<void> {
  if (existsSync(join(database, 'postmaster.pid'))) {
    const old = await startPostgres({ dataDir: database }).catch(() => undefined)
    await old?.destroy()
  }
  await rm(database, { recursive: true, force: true })
  for (const name of ours) await rm(join(path, name), { recursive: true, force: true })
}

async function keptSecret(file: string): Promise<string> {
  if (!existsSync(file)) await writeFile(file, randomBytes(32).toString('hex'), { mode: 0o600 })
  return readFile(file, 'utf8')
}
