// The main run through PgBouncer in transaction mode, where it is installed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { adopt } from '../processes.mjs'
import * as stages from '../stage.mjs'
import { all, catalogue } from '../subscriptions.mjs'
import { play, settings, withStage } from './chaos.mjs'

export async function pgbouncer(options) {
  const binary = findBinary()
  if (binary === undefined) {
    const skipped = 'pgbouncer not found; apt install pgbouncer'
    stages.say(`skipped: ${skipped}`)
    return { scenario: 'pgbouncer', skipped, ok: process.env.HERMOD_REQUIRE_SERVICES !== 'all' }
  }
  return withStage(options, { subscriptions: [...all, catalogue], settings }, (stage) => throughPooler(stage, binary))
}

function findBinary() {
  const named = process.env.HERMOD_TEST_PGBOUNCER
  if (named !== undefined) return named
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))
}

/** Workers and writers go through it; the judge asks PostgreSQL itself. */
async function throughPooler(stage, binary) {
  const port = await freePort()
  const pooler = spawn(binary, [...account(), writeSettings(stage, port)], {
    stdio: ['ignore', 'ignore', 2],
    cwd: '/',
  })
  adopt(pooler)
  try {
    await answering(`postgres://postgres@127.0.0.1:${port}/chaos`)
    stages.say(`through PgBouncer on port ${port}`)
    return { scenario: 'pgbouncer', ...(await play(stage, port)) }
  } finally {
    if (pooler.exitCode === null) {
      pooler.kill('SIGKILL')
      await once(pooler, 'exit')
    }
  }
}

/** It refuses to run as root. */
function account() {
  return process.getuid?.() === 0 ? ['-q', '-u', 'nobody'] : ['-q']
}

function writeSettings(stage, port) {
  const folder = join(stage.folder, 'pgbouncer')
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(join(folder, 'users.txt'), '"postgres" ""\n', { mode: 0o644 })
  const lines = [
    '[databases]',
    `chaos = host=127.0.0.1 port=${stage.postgres.port} dbname=chaos user=postgres`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    'pool_mode = transaction\ndefault_pool_size = 30\nmax_client_conn = 500',
    `auth_type = trust\nauth_file = ${join(folder, 'users.txt')}`,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o644 })
  return file
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

async function answering(url) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await stages.withClient(url, (client) => client.query('select 1'))
    } catch (error) {
      if (attempt === 100) throw error
      await pause(50)
    }
  }
}
