// A copy of the engine with patches: patched SQL is migrated into a database of its own, patched
// TypeScript is imported from a copy of the sources.

import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { copyDatabase, type Env, engineRoot, loadEngine } from '../support/case.ts'
import type { TestDatabase } from '../support/database.ts'
import { importsOf, readTree, rootPath, targetOf } from '../support/source-tree.ts'
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

const sources = readTree().filter(({ path }) => path.startsWith('packages/hermod/src/'))
const targets = new Map(sources.map((file) => [file.path, importsOf(file).map(({ from }) => targetOf(file, from))]))

/** These files and whatever imports them, directly or not. */
function reached(paths: Iterable<string>): Set<string> {
  const found = new Set<string | undefined>(paths)
  for (const path of found) {
    for (const [by, to] of targets) if (to.includes(path)) found.add(by)
  }
  return found as Set<string>
}

/**
 * Inside the repository, so that the copy finds the installed packages. What no patch reaches is a link
 * to the engine's own file, which need not be compiled again: half of the time a sabotage takes.
 */
async function copySources({ name, patches }: Sabotage): Promise<string> {
  const root = join(rootPath, '.hermod', 'ablations', `${name}-${process.pid}`)
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const copied = reached(patches.map(({ file }) => `packages/hermod/${file}`))
  for (const { path, text } of sources) {
    const file = path.slice('packages/hermod/'.length)
    await mkdir(dirname(join(root, file)), { recursive: true })
    const mine = patches.filter((patch) => patch.file === file)
    if (copied.has(path)) await writeFile(join(root, file), mine.reduce(applyPatch, text))
    else await symlink(join(rootPath, path), join(root, file))
  }
  for (const name of ['migrations', 'package.json']) {
    await symlink(join(engineRoot, name), join(root, name))
  }
  return root
}
