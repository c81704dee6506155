// Faults of the database: a crash and a start, single backends ended in the middle of a statement,
// and no connection left for anybody.

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { commitPrepared, withClient } from '../stage.mjs'

let crashing = Promise.resolve()

/** Immediate stop: the next start recovers from the log. One crash at a time. */
export function crash(stage) {
  const done = crashing.then(async () => {
    await stage.postgres.stop('immediate')
    const before = new Date()
    await stage.postgres.start()
    // Writers whose prepared transaction survived have lost their connection.
    await commitPrepared(stage, { before })
    return { happened: true }
  })
  crashing = done.catch(() => {})
  return done
}

const isStep = /outbox\.(sequence|turn)\(/
const statements = {
  step: `query ~ 'outbox\\.(sequence|turn)\\(' and state = 'active'`,
  claim: `query ~ 'outbox\\.(claim|read|turn)\\(' and state = 'active'`,
  settle: `query ~ 'outbox\\.(settle|turn)\\(' and state = 'active'`,
  listen: `query ~* '^listen '`,
  any: 'true',
}

/** Looks until somebody is at it right now, then ends that backend. */
export async function cutBackend(stage, { doing }) {
  const text = `select pg_terminate_backend(pid), query, state from pg_stat_activity
    where pid = (select pid from pg_stat_activity where application_name like 'worker-%' and ${statements[doing]}
      order by random() limit 1)`
  return withClient(stage.url, async (client) => {
    for (let look = 0; look < 400; look++) {
      const { rows } = await client.query(text)
      if (rows.length > 0) return { happened: true, state: rows[0].state, step: isStep.test(rows[0].query) }
      await pause(2)
    }
    return { happened: false, why: 'nobody was at it' }
  })
}

/** All connections but two are taken, and a worker loses those it had. */
export async function exhaust(stage, { who, ms }) {
  const held = []
  try {
    for (;;) {
      const client = new pg.Client({ connectionString: stage.url, application_name: 'hoarder' })
      client.on('error', () => {})
      try {
        await client.connect()
      } catch (error) {
        if (error.code !== '53300') throw error
        break
      }
      held.push(client)
    }
    for (const client of held.splice(0, 2)) await client.end()
    await stage.proxy.ask('fault', { name: `${who}/db`, kind: 'cut' })
    await pause(ms)
    return { happened: true, held: held.length }
  } finally {
    await Promise.all(held.map((client) => client.end().catch(() => {})))
  }
}
