/**
 * What `npm start` is: an embedded PostgreSQL, the server, a worker, search, catchers and a demo, in
 * one process on loopback.
 */
import { migrate, type Worker } from 'hermod'
import type { Config } from '../config.ts'
import { watchWorkspace } from '../documents/workspace/watch.ts'
import { createLog } from '../log.ts'
import { migrateServer } from '../migrate.ts'
import { type RunningServer, startServer } from '../serve.ts'
import { catcherRoutes } from './catcher-routes.ts'
import { type DataFolder, openDataFolder } from './data-folder.ts'
import { type Demo, openDemo } from './demo.ts'
import { keepEditing } from './demo-edits.ts'
import { freePortFrom } from './free-port.ts'
import { guardLoopback } from './guard-loopback.ts'
import { type MailCatcher, startMailCatcher } from './mail-catcher.ts'
import type { DevOptions } from './options.ts'
import type { Stages } from './stages.ts'

export interface Dev {
  readonly data: DataFolder
  readonly mail: MailCatcher
  readonly server: RunningServer
  readonly demo: Demo
}

export async function startDev(stages: Stages, options: DevOptions, logLevel: Config['logLevel']): Promise<Dev> {
  const data = await stages.start(
    'database',
    () => openDataFolder(options),
    (it) => it.close(),
  )
  const mail = await stages.start('mail catcher', startMailCatcher, (it) => it.close())
  const port = await freePortFrom(options.port)
  const server = await stages.start(
    'server',
    () => openServer(configOf(data, port, logLevel), mail),
    (it) => it.stop(),
  )
  await stages.start(
    'worker',
    () => startWorker(server),
    (it) => it.stop(),
  )
  await stages.start(
    'workspace',
    async () => watchWorkspace(server.platform, { everyMs: 10_000 }),
    (it) => it.stop(),
  )
  const demo = await stages.start('demo', () => openDemo(server, data, options.demo))
  if (options.demo)
    await stages.start(
      'edits',
      async () => keepEditing(demo),
      (it) => it.stop(),
    )
  return { data, mail, server, demo }
}

/**
 * Nobody else works on this database, so what a killed worker had leased is free at once: otherwise
 * its lanes would wait for their leases to end.
 */
async function startWorker({ platform: { outbox, pool, config } }: RunningServer): Promise<Worker> {
  await pool.query(
    `select outbox.release(subscription, owner, array[lane]::smallint[], array[fence])
       from outbox.lane where owner is not null`,
  )
  return outbox.start({ name: 'dev', stopGraceMs: 1_000, retention: config.retention })
}

async function openServer(config: Config, mail: MailCatcher): Promise<RunningServer> {
  const log = createLog(config.logLevel, {
    readable: process.stderr.isTTY,
    write: (line) => process.stderr.write(line),
  })
  return startServer(config, {
    log,
    graceMs: 500,
    prepare: async ({ pool }) => {
      await migrate(pool)
      await migrateServer(pool)
    },
    extend: async (app) => {
      guardLoopback(app)
      await catcherRoutes(app, mail)
    },
  })
}

/** Not configurable from outside: it must stay on loopback. */
function configOf(data: DataFolder, port: number, logLevel: Config['logLevel']): Config {
  const url = data.postgres.url()
  return Object.freeze({
    databaseUrl: url,
    searchDatabaseUrl: url,
    host: '127.0.0.1',
    port,
    secret: data.secret,
    issuers: [],
    defaultRole: 'reader' as const,
    workspace: { provider: 'local' as const, folder: data.documents },
    auditIp: 'full' as const,
    trustProxy: false,
    development: true,
    outbox: true,
    logLevel,
    limits: { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 100_000 },
    retention: {},
  })
}
