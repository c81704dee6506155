// A copy of the built engine for one run, so that a rebuild meanwhile changes nothing, and so that
// an ablation can take one safeguard out of the copy without a switch in production code.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ablations } from './ablations.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The folder of the copy: `dist` and `migrations` as in the package. */
export function copyEngine(folder, { ablate: ablation, engine = join(root, 'packages/hermod') }) {
  const copy = join(folder, 'engine')
  mkdirSync(copy)
  for (const part of ['dist', 'migrations', 'package.json']) {
    cpSync(join(engine, part), join(copy, part), { recursive: true })
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
    throw new Error(`--ablate must be one of ${Object.keys(ablations).join(', ')} (got ${name})`)
  }
  const { file, find, put } = ablations[name]
  const path = join(copy, file)
  const pieces = readFileSync(path, 'utf8').split(find)
  if (pieces.length !== 2) {
    throw new Error(`ablation ${name}: found ${pieces.length - 1} times in ${file}, wanted once`)
  }
  writeFileSync(path, pieces.join(put))
}
