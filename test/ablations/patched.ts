// A copy of the engine with patches: patched routines are put over those of a database of its own,
// patched TypeScript is imported from a copy of the sources.

import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { copyDatabase, type Env, engineRoot, loadEngine } from '../support/case.ts'
import type { TestDatabase } from '../support/database.ts'
import { importsOf, readTree, rootPath, targetOf } from '../support/source-tree.ts'
import { applyPatch, type Sabotage } from './sabotage.ts'

export async function patchedEnv(server: TestDatabase, sabotage: Sabotage): Promise<Env> {
  const code = sabotage.patches.some(({ file }) => file.startsWith('src/'))
  const db = await copyDatabase(server, server.name, { force: true })
  await patchRoutines(db, sabotage)
  const engine = await loadEngine(code ? await copySources(sabotage) : engineRoot)
  return { db, engine }
}

/** Recorded is the hash of the originals, which the engine will compare. */
async function patchRoutines(db: TestDatabase, { patches }: Sabotage): Promise<void> {
  const sql = patches.filter(({ file }) => !file.startsWith('src/'))
  for (const name of new Set(sql.map(({ file }) => file))) {
    if (!name.startsWith('routines/')) throw new Error(`${name}: a patch is for routines/ or src/`)
    const text = await readFile(join(engineRoot, name), 'utf8')
    await db.query(sql.filter(({ file }) => file === name).reduce(applyPatch, text))
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
  for (const name of ['migrations', 'routines', 'package.json']) {
    await symlink(join(engineRoot, name), join(root, name))
  }
  return root
}
