// A copy of the built engine for one run, so that a rebuild meanwhile changes nothing, and so that
// an ablation can take one safeguard out of the copy without a switch in production code.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ablations } from './ablations.mjs'

const sqlFolders = ['migrations', 'routines']
const root = fileURLToPath(new URL('../../', import.meta.url))

/** The folder of the copy: `dist` and the SQL as in the package. */
export function copyEngine(folder, { ablate: ablation, engine = join(root, 'packages/hermod') }) {
  const copy = join(folder, 'engine')
  mkdirSync(copy)
  for (const part of ['dist', ...sqlFolders, 'package.json']) {
    if (existsSync(join(engine, part))) cpSync(join(engine, part), join(copy, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
  if (ablation !== undefined) ablate(copy, ablation)
  return copy
}

export function importEngine(copy, door = 'index.js') {
  return import(pathToFileURL(join(copy, 'dist', door)).href)
}

/** The text must be there exactly once: an ablation that no longer fits fails instead of rotting. */
function ablate(copy, name) {
  if (!Object.hasOwn(ablations, name)) {
    throw new Error(`--ablate must be all or one of ${Object.keys(ablations).join(', ')} (got ${name})`)
  }
  const { file, find, put } = ablations[name]
  const found = filesOf(copy, file).map((path) => ({ path, pieces: readFileSync(path, 'utf8').split(find) }))
  const times = found.reduce((sum, { pieces }) => sum + pieces.length - 1, 0)
  if (times !== 1) throw new Error(`ablation ${name}: found ${times} times in ${file}, wanted once`)
  for (const { path, pieces } of found) writeFileSync(path, pieces.join(put))
}

function filesOf(copy, file) {
  if (file !== '*.sql') return [join(copy, file)]
  const folders = sqlFolders.map((folder) => join(copy, folder)).filter((folder) => existsSync(folder))
  return folders.flatMap((folder) => {
    const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.sql'))
    return names.map((name) => join(folder, name))
  })
}
