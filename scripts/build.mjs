// Compiles packages whose sources changed since the last build. Freshness is judged by content,
// not by time, so a copied or cloned tree is judged rightly and whoever built it does not matter.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fail, root, runNode } from './process.mjs'

const packagesPath = fileURLToPath(new URL('packages', root))
const stampName = '.hermod-build'

/** Builds every stale package; resolves with 0, or the compiler's exit code. */
export async function build() {
  for (const name of readdirSync(packagesPath)) {
    const folder = join(packagesPath, name)
    if (!existsSync(join(folder, 'tsconfig.json'))) continue
    const code = await buildPackage(name, folder)
    if (code !== 0) return code
  }
  return 0
}

async function buildPackage(name, folder) {
  const wanted = digest(folder)
  const stamp = join(folder, 'dist', stampName)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return 0
  console.error(`Building packages/${name} …`)
  const code = await runNode('node_modules/typescript/bin/tsc', ['-p', folder])
  if (code === 0) finish(folder, stamp, wanted)
  return code
}

function finish(folder, stamp, wanted) {
  try {
    removeOrphans(folder)
    writeFileSync(stamp, wanted)
  } catch (error) {
    fail(`Cannot write ${stamp} (${error.code}). Delete the folder dist or take it over, then retry.`)
  }
}

function digest(folder) {
  const hash = createHash('sha256')
  const inputs = [
    ...filesBelow(join(folder, 'src')),
    ...filesBelow(join(folder, 'migrations')),
    ...filesBelow(join(folder, 'routines')),
    join(folder, 'tsconfig.json'),
    fileURLToPath(new URL('tsconfig.base.json', root)),
    fileURLToPath(new URL('package-lock.json', root)),
  ]
  for (const path of inputs) {
    hash
      .update(`${path.slice(packagesPath.length)}\0`)
      .update(readFileSync(path))
      .update('\0')
  }
  return hash.digest('hex')
}

function filesBelow(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** Output of a source file that was deleted would still be importable. */
function removeOrphans(folder) {
  const dist = join(folder, 'dist')
  for (const path of filesBelow(dist)) {
    const source = join(folder, 'src', path.slice(dist.length)).replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts')
    if (/\.(js|d\.ts)(\.map)?$/.test(path) && !existsSync(source)) rmSync(path)
  }
}
