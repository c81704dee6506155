// The one entry behind every npm script: installs what is missing, builds what is stale, then
// runs the command. Uses nothing but Node, so that it works on a fresh clone.

import { existsSync } from 'node:fs'
import { build } from './build.mjs'
import { check, format } from './check.mjs'
import { ensureInstalled } from './install.mjs'
import { fail, root, runNode } from './process.mjs'
import { test } from './test.mjs'
import { versions } from './versions.mjs'

const [command = '', ...args] = process.argv.slice(2)

const commands = {
  start: () => program('packages/hermod/bin/hermod.js', ['dev', ...args]),
  test: () => test(args),
  versions: () => versions(args),
  build: () => build(),
  check: async () => ((await check()).every((result) => result.passed) ? 0 : 1),
  format: () => format(),
  chaos: () => program('test/chaos/run.mjs'),
  bench: () => program('bench/run.mjs'),
}

async function program(path, given = args) {
  if (!existsSync(new URL(path, root))) fail(`${path} does not exist yet.`)
  const code = await build()
  return code === 0 ? runNode(path, given) : code
}

function assertNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  fail(`Hermod needs Node 20.19 or newer (24 recommended); this is ${process.versions.node}.`)
}

assertNode()
if (!Object.hasOwn(commands, command)) {
  fail(`Unknown command "${command}". Known: ${Object.keys(commands).join(', ')}.`)
}
await ensureInstalled()
process.exitCode = await commands[command]()
