/**
 * The peers, installed on demand in a folder of their own: the newest versions the running Node
 * supports. Neither our install nor our lockfile knows them.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const peerNames = ['pg-boss', 'graphile-worker', 'pg-transactional-outbox']

const [major, minor] = process.versions.node.split('.').map(Number)
const isRecent = major > 22 || (major === 22 && minor >= 18)
const folder = new URL(`peers/${isRecent ? 'node22' : 'node20'}/`, import.meta.url)
const read = (path) => JSON.parse(readFileSync(new URL(path, folder), 'utf8'))

/** Version by name of the peers that are installed as wanted. */
export function installedPeers() {
  const wanted = read('package.json').dependencies
  const found = peerNames.map((name) => [name, installedVersion(name)])
  return Object.fromEntries(found.filter(([name, version]) => version === wanted[name]))
}

function installedVersion(name) {
  const path = `node_modules/${name}/package.json`
  return existsSync(new URL(path, folder)) ? read(path).version : undefined
}

/** Installs what is missing; false: it could not be done (no network, no right to write). */
export function installPeers() {
  if (Object.keys(installedPeers()).length === peerNames.length) return true
  console.error(`Installing the peers in ${fileURLToPath(folder)} …`)
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  return npm(args).status === 0
}

function npm(args) {
  const options = { cwd: fileURLToPath(folder), stdio: ['ignore', 2, 2], timeout: 180_000 }
  const path = process.env.npm_execpath
  if (path?.endsWith('.js')) return spawnSync(process.execPath, [path, ...args], options)
  return spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
}

/** The module of a peer. */
export async function loadPeer(name) {
  const { load } = await import(new URL('load.mjs', folder))
  return load(name)
}
