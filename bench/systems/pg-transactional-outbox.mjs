/**
 * pg-transactional-outbox with its polling listener: messages may run in parallel, the batch is full
 * from the first poll on, its protections for poisonous messages (extra writes) are off.
 */
import { randomUUID } from 'node:crypto'
import { aggregateType, type } from '../payload.mjs'
import { loadPeer } from '../peers.mjs'
import { openPool } from '../pool.mjs'

const table = { schema: 'outbox_peer', table: 'outbox', outboxOrInbox: 'outbox' }
const names = {
  ...table,
  database: 'bench',
  listenerRole: 'postgres',
  nextMessagesName: 'next_outbox_messages',
}

let library

const message = ({ aggregateId, payload }) => ({
  id: randomUUID(),
  aggregateType,
  aggregateId,
  messageType: type,
  payload,
  concurrency: 'parallel',
})

const listenerSettings = ({ batch, idleMs }) => ({
  dbSchema: table.schema,
  dbTable: table.table,
  enableMaxAttemptsProtection: false,
  enablePoisonousMessageProtection: false,
  messageCleanupIntervalInMs: 0,
  nextMessagesFunctionSchema: table.schema,
  nextMessagesFunctionName: names.nextMessagesName,
  nextMessagesBatchSize: batch,
  nextMessagesPollingIntervalInMs: idleMs,
  nextMessagesLockInMs: 10_000,
})

export default {
  name: 'pg-transactional-outbox',
  schema: table.schema,
  settings: { batch: 100, connections: 16, idleMs: 10 },
  reasons:
    'the polling listener (several may run; the other one needs wal_level = logical for the whole server); ' +
    'parallel messages, a full batch from the first poll, polls only between batches, protections off',
  candidates: [
    { batch: 50, connections: 8, idleMs: 10 },
    { batch: 100, connections: 16, idleMs: 10 },
    { batch: 200, connections: 16, idleMs: 10 },
    { batch: 500, connections: 16, idleMs: 10 },
    { batch: 1_000, connections: 24, idleMs: 10 },
  ],

  async load() {
    const module = await loadPeer('pg-transactional-outbox')
    library = module.initializePollingMessageListener ? module : module.default
  },

  async install(url) {
    const { DatabaseSetup: setup } = library
    const pool = openPool(url, 1)
    await pool.query(setup.dropAndCreateTable(names))
    await pool.query(setup.createPollingFunction(names))
    await pool.query(setup.setupPollingIndexes(names))
    await pool.end()
  },

  async producer() {
    const config = { outboxOrInbox: 'outbox', settings: listenerSettings(this.settings) }
    const store = library.initializeMessageStorage(config, library.getDisabledLogger())
    return {
      // It has no bulk form: one insert a message.
      async enqueue(client, items) {
        for (const item of items) await store(message(item), client)
      },
      committed() {},
      async end() {},
    }
  },

  async consumer(url, { delivered, settings }) {
    const db = { connectionString: url, max: settings.connections }
    const [shutdown] = library.initializePollingMessageListener(
      { outboxOrInbox: 'outbox', dbListenerConfig: db, settings: listenerSettings(settings) },
      { handle: async ({ payload }) => delivered(1, () => payload.id) },
      { ...library.getDisabledLogger(), error: (...all) => console.error(...all) },
      { batchSizeStrategy: batchSize(settings.batch) },
    )
    const pool = openPool(url, 1)
    return {
      async stop() {
        await untilProcessed(pool)
      },
      async end() {
        await shutdown()
        await pool.end()
      },
    }
  },

  async check(pool, events) {
    const { rows } = await pool.query('select count(processed_at)::int as done from outbox_peer.outbox')
    if (rows[0].done !== events) throw new Error(`processed ${rows[0].done} of ${events} messages`)
  },
}

/**
 * A poll locks the oldest open message even when it is being handled, whose handler then fails and
 * waits for the end of the message's lock (seconds): poll only when all of the batch are done.
 */
function batchSize(batch) {
  return async (open) => {
    if (open === 0) return batch
    await new Promise((resolve) => setTimeout(resolve, 1))
    return 0
  }
}

/** The handler runs before its message is marked: wait for the last marks. */
async function untilProcessed(pool) {
  for (let tries = 0; tries < 5_000; tries++) {
    const { rows } = await pool.query(
      'select exists (select from outbox_peer.outbox where processed_at is null) as open',
    )
    if (!rows[0].open) return
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
