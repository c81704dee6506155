// A copy of the engine with patches: patched SQL is migrated into a database of its own, patched
// TypeScript is imported from a copy of the sources.

import { createHash } from 'node:crypto'
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { copyDatabase, type Env, engineRoot, loadEngine } from '../support/case.ts'
import type { TestDatabase } from '../support/database.ts'
import { rootPath } from '../support/source-tree.ts'
import { applyPatch, type Sabotage } from './sabotage.ts'

export async function patchedEnv(server: TestDatabase, sabotage: Sabotage): Promise<Env> {
  const sql = sabotage.patches.some(({ file }) => file.startsWith('migrations/'))
  const code = sabotage.patches.some(({ file }) => file.startsWith('src/'))
  // Without patched SQL the server's own database, migrated as it should be, is the template.
  const db = await copyDatabase(server, sql ? 'template0' : server.name, { force: true })
  if (sql) await migratePatched(db, sabotage)
  const engine = await loadEngine(code ? await copySources(sabotage) : engineRoot)
  return { db, engine }
}

/** Recorded under the hash of the original, which the engine will compare. */
async function migratePatched(db: TestDatabase, { patches }: Sabotage): Promise<void> {
  const folder = join(engineRoot, 'migrations')
  await db.query(`create schema outbox`)
  await db.query(`create table outbox.migration (
    version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now())`)
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()) {
    const text = await readFile(join(folder, name), 'utf8')
    const mine = patches.filter(({ file }) => file === `migrations/${name}`)
    await db.query(mine.reduce(applyPatch, text))
    const hash = createHash('sha256').update(text).digest('hex')
    await db.query('insert into outbox.migration (version, name, hash) values ($1, $2, $3)', [
      Number(name.slice(0, 4)),
      name.slice(0, -4),
      hash,
    ])
  }
}

/** Inside the repository, so that the copy finds the installed packages. */
async function copySources({ name, patches }: Sabotage): Promise<string> {
  const root = join(rootPath, '.hermod', 'ablations', `${name}-${process.pid}`)
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  await mkdir(root, { recursive: true })
  await cp(join(engineRoot, 'src'), join(root, 'src'), { recursive: true })
  await cp(join(engineRoot, 'migrations'), join(root, 'migrations'), { recursive: true })
  await cp(join(engineRoot, 'package.json'), join(root, 'package.json'))
  for (const patch of patches.filter(({ file }) => file.startsWith('src/'))) {
    const path = join(root, patch.file)
    await writeFile(path, applyPatch(await readFile(path, 'utf8'), patch))
  }
  return root
}
