// Before the examples run: the engine is built, their own dependencies are installed, and Prisma's
// client is generated. Each step is skipped when it was done for the same files; nothing but npm
// itself is downloaded.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = new URL('./', import.meta.url)

export function prepare() {
  run(process.execPath, [fileURLToPath(new URL('../../scripts/run.mjs', folder)), 'build'])
  once('node_modules/.hermod-lock', ['package.json', 'package-lock.json'], () => {
    console.error('Installing the client libraries (npm ci) …')
    run('npm', ['ci', '--ignore-scripts'])
  })
  once('node_modules/.prisma/.hermod-schema', ['schema.prisma', 'package-lock.json'], () => {
    // Only migrations need the schema engine; without this variable Prisma wants to download it.
    const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
    const prisma = fileURLToPath(new URL('node_modules/prisma/build/index.js', folder))
    run(process.execPath, [prisma, 'generate', '--schema', 'schema.prisma'], env)
  })
}

/** Runs `step` unless the stamp says that it ran for these files. */
function once(stampPath, inputs, step) {
  const stamp = new URL(stampPath, folder)
  const hash = createHash('sha256')
  for (const input of inputs) hash.update(readFileSync(new URL(input, folder)))
  const wanted = hash.digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  step()
  writeFileSync(stamp, wanted)
}

/** Output goes to standard error, so that standard output holds results only. */
function run(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: fileURLToPath(folder),
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2],
    shell: command === 'npm' && process.platform === 'win32',
  })
  if (status === 0) return
  console.error(`${command} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}`)
  process.exit(1)
}
