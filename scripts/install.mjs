// Installs the dependencies when they are missing or do not match the lockfile. An install that
// matches, whoever made it, is left alone and needs no network.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fail, root } from './process.mjs'

const lockfile = new URL('package-lock.json', root)
const installed = new URL('node_modules/.package-lock.json', root)
const stamp = new URL('node_modules/.hermod-lock', root)

export async function ensureInstalled() {
  const wanted = stampText()
  if (readText(stamp) === wanted) return
  if (!matchesLockfile()) install()
  try {
    writeFileSync(stamp, wanted)
  } catch {
    // An install that belongs to somebody else: compare again next time.
  }
}

function stampText() {
  const hash = createHash('sha256').update(readFileSync(lockfile)).digest('hex')
  return `${hash} ${process.platform}-${process.arch}\n`
}

function readText(url) {
  return existsSync(url) ? readFileSync(url, 'utf8') : ''
}

/** npm writes down what it installed; packages for other systems are rightly absent. */
function matchesLockfile() {
  if (!existsSync(installed)) return false
  const have = JSON.parse(readText(installed)).packages
  return Object.entries(JSON.parse(readText(lockfile)).packages).every(
    ([path, entry]) =>
      !path.startsWith('node_modules/') || entry.link || !isForUs(entry) || have[path]?.version === entry.version,
  )
}

function isForUs({ os, cpu, libc, optional }) {
  if (os && !os.includes(process.platform)) return false
  if (cpu && !cpu.includes(process.arch)) return false
  return !(libc && optional)
}

function install() {
  console.error('Installing dependencies (npm ci) …')
  const { status, error } = npm(['ci'])
  if (status === 0) return
  fail(`npm ci failed (${error?.message ?? `exit code ${status}`}); see its output above.`)
}

/** Run the npm that runs us, else the one on the PATH (on Windows a script, so by a shell). */
export function npm(command, cwd = fileURLToPath(root)) {
  const args = [...command, '--ignore-scripts', '--no-audit', '--no-fund', ...cacheArguments()]
  const options = { cwd, stdio: ['ignore', 2, 2] }
  const path = process.env.npm_execpath
  if (path?.endsWith('.js')) return spawnSync(process.execPath, [path, ...args], options)
  return spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
}

/** A user such as `nobody` has no home to write to. */
function cacheArguments() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm')
  try {
    mkdirSync(cache, { recursive: true })
    writeFileSync(join(cache, '.hermod-probe'), '')
    return []
  } catch {
    return ['--cache', join(tmpdir(), `hermod-npm-cache-${process.getuid?.() ?? 0}`)]
  }
}
