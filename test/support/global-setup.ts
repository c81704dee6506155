// Before all tests: one PostgreSQL cluster for the run (or the server of DATABASE_URL) and a
// migrated template database. After them: everything is removed, unless a failed test kept a
// database; then the data directory stays and the way to open it is printed.

import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { type Postgres, startPostgres } from '../../packages/hermod/src/embedded/index.ts'
import { useMemoryFolder } from './memory-folder.ts'
import { rootPath } from './source-tree.ts'
import { migrateDatabase, withDatabase } from './template.ts'

/** In the data directory of a cluster that was kept; holds the path of the clone. */
const marker = 'hermod.kept'

export type TestServer = {
  /** A database from which databases can be created and dropped. */
  readonly adminUrl: string
  readonly template: string
  /** Names of this run's databases start with this. */
  readonly prefix: string
  /** Of PostgreSQL: for tests of what older servers do not have. */
  readonly major: number
  /** Why the template could not be migrated; files that need it fail with this. */
  readonly templateError: string | undefined
}

declare module 'vitest' {
  interface ProvidedContext {
    testServer: TestServer
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  useMemoryFolder()
  const external = process.env.DATABASE_URL
  const cluster = external ? undefined : await startPostgres()
  const adminUrl = external ?? (cluster as Postgres).url()
  const prefix = `hermod_${randomBytes(4).toString('hex')}_`
  const template = `${prefix}template`
  await admin(adminUrl, `create database ${template} template template0`)
  const templateError = await migrateTemplate(withDatabase(adminUrl, template))
  const [server] = await admin(adminUrl, `select current_setting('server_version_num')::int / 10000 as major`)
  project.provide('testServer', { adminUrl, template, prefix, major: Number(server?.major), templateError })
  return () => teardown(adminUrl, template, prefix, cluster)
}

async function migrateTemplate(url: string): Promise<string | undefined> {
  try {
    await migrateDatabase(url)
    return undefined
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
}

async function teardown(
  adminUrl: string,
  template: string,
  prefix: string,
  cluster: Postgres | undefined,
): Promise<void> {
  if (!cluster) {
    await admin(adminUrl, `drop database ${template} with (force)`)
    return
  }
  const kept = await admin(
    adminUrl,
    `select datname from pg_database where starts_with(datname, '${prefix}') and datname <> '${template}'`,
  )
  if (kept.length === 0 || process.env.CI) return cluster.destroy()
  const names = kept.map((row) => row.datname).join(', ')
  await keepForInspection(cluster, names)
}

async function keepForInspection(cluster: Postgres, names: string): Promise<void> {
  cluster.keep()
  await cluster.stop()
  await writeFile(join(cluster.dataDir, marker), rootPath)
  await pruneKept(dirname(cluster.dataDir))
  console.log(`\nKept for inspection: ${names}`)
  console.log(`  open with: node scripts/open-cluster.mjs ${cluster.dataDir}`)
}

/** A kept cluster takes about 60 MB: only the newest three of this clone stay. */
async function pruneKept(folder: string): Promise<void> {
  const kept: Array<{ path: string; at: number }> = []
  for (const name of (await readdir(folder)).filter((entry) => entry.startsWith('hermod-pg-'))) {
    const file = join(folder, name, marker)
    const owner = await readFile(file, 'utf8').catch(() => undefined)
    if (owner === rootPath) kept.push({ path: dirname(file), at: (await stat(file)).mtimeMs })
  }
  const old = kept.toSorted((a, b) => b.at - a.at).slice(3)
  for (const { path } of old) await rm(path, { recursive: true, force: true })
}

async function admin(url: string, sql: string): Promise<Array<Record<string, unknown>>> {
  const client = new pg.Client({ connectionString: url, application_name: 'hermod-setup' })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
