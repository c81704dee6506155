/**
 * pg-boss 10 (Node 20) or 12. Not `work()`, which sleeps between batches (500 ms at least in 10), but
 * its public `fetch` and `complete` in batches, in several loops that never wait while there is work.
 */
import { loadPeer } from '../peers.mjs'

const queue = 'bench'
const idleMs = 5

let PgBoss
let isOld

async function boss(url, max) {
  const instance = new PgBoss({
    connectionString: url,
    max,
    schedule: false,
    supervise: false,
    migrate: false,
  })
  instance.on('error', (error) => console.error('pg-boss:', error))
  await instance.start()
  return instance
}

const withClient = (client) => ({
  db: { executeSql: (text, values) => client.query(text, values) },
})

export default {
  name: 'pg-boss',
  schema: 'pgboss',
  settings: { loops: 2, batch: 1_000 },
  reasons:
    'fetch + complete of whole batches in parallel loops instead of work(), which sleeps between batches; ' +
    'a partition of its own; supervision and schedules off; no metadata',
  candidates: [
    { loops: 1, batch: 1_000 },
    { loops: 2, batch: 500 },
    { loops: 2, batch: 1_000 },
    { loops: 2, batch: 2_000 },
    { loops: 4, batch: 500 },
    { loops: 4, batch: 1_000 },
  ],

  async load() {
    const module = await loadPeer('pg-boss')
    PgBoss = module.PgBoss ?? module.default
    isOld = module.PgBoss === undefined
  },

  async install(url) {
    const instance = new PgBoss({ connectionString: url, schedule: false, supervise: false })
    await instance.start()
    await instance.createQueue(queue, isOld ? {} : { partition: true })
    await instance.stop({ graceful: false })
  },

  async producer(url) {
    const instance = await boss(url, 2)
    const insert = (jobs, options) =>
      isOld
        ? instance.insert(
            jobs.map((job) => ({ name: queue, ...job })),
            options,
          )
        : instance.insert(queue, jobs, options)
    return {
      enqueue: (client, items) =>
        items.length === 1
          ? instance.send(queue, items[0].payload, withClient(client))
          : insert(
              items.map(({ payload }) => ({ data: payload })),
              withClient(client),
            ),
      committed() {},
      end: () => instance.stop({ graceful: false }),
    }
  },

  async consumer(url, { delivered, settings }) {
    const instance = await boss(url, settings.loops + 2)
    // 12 always sorts by priority and warns of the option.
    const wanted = { batchSize: settings.batch, ...(isOld && { priority: false }) }
    let stopping = false
    const loop = async () => {
      while (!stopping) {
        const jobs = await instance.fetch(queue, wanted)
        if (jobs.length > 0) {
          delivered(jobs.length, (index) => jobs[index].data.id)
          await instance.complete(
            queue,
            jobs.map(({ id }) => id),
          )
        } else await new Promise((resolve) => setTimeout(resolve, idleMs))
      }
    }
    const loops = Promise.all(Array.from({ length: settings.loops }, loop))
    return {
      async stop() {
        stopping = true
        await loops
      },
      end: () => instance.stop({ graceful: false }),
    }
  },

  async check(pool, events) {
    const { rows } = await pool.query(`select count(*)::int as done from pgboss.job where state = 'completed'`)
    if (rows[0].done !== events) throw new Error(`pg-boss completed ${rows[0].done} of ${events}`)
  },
}
