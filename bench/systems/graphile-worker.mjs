/**
 * graphile-worker with the settings of its own performance test: a local queue of 500 jobs, batched
 * completion without delay, many concurrent jobs, no log line per job.
 */
import { loadPeer } from '../peers.mjs'

const task = 'bench'
const ADD = 'select graphile_worker.add_job($1, $2::json)'
// The statement of its own addJobs(), on the caller's client.
const ADD_MANY = `select from graphile_worker.add_jobs(
  array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)), null::boolean)`

let worker

const quiet = () => new worker.Logger(() => (level, message) => level === 'error' && console.error(message))

export default {
  name: 'graphile-worker',
  schema: 'graphile_worker',
  settings: { concurrency: 24, localQueue: 500, completeDelayMs: 0 },
  reasons:
    'the settings of its own performance test: localQueue, batched completion, 24 concurrent jobs, ' +
    'no log line per job (NO_LOG_SUCCESS)',
  candidates: [
    { concurrency: 10, localQueue: 500, completeDelayMs: 0 },
    { concurrency: 24, localQueue: 500, completeDelayMs: 0 },
    { concurrency: 24, localQueue: 1_000, completeDelayMs: 0 },
    { concurrency: 24, localQueue: 2_000, completeDelayMs: 5 },
    { concurrency: 50, localQueue: 500, completeDelayMs: 0 },
    { concurrency: 50, localQueue: 1_000, completeDelayMs: 5 },
  ],

  async load() {
    process.env.NO_LOG_SUCCESS = '1'
    const module = await loadPeer('graphile-worker')
    worker = module.run ? module : module.default
  },

  async install(url) {
    await worker.runMigrations({ connectionString: url, logger: quiet() })
  },

  async producer() {
    return {
      enqueue: (client, items) =>
        items.length === 1
          ? client.query(ADD, [task, JSON.stringify(items[0].payload)])
          : client.query(ADD_MANY, [JSON.stringify(items.map(({ payload }) => ({ identifier: task, payload })))]),
      committed() {},
      async end() {},
    }
  },

  async consumer(url, { delivered, settings }) {
    const runner = await worker.run({
      connectionString: url,
      logger: quiet(),
      noHandleSignals: true,
      crontab: '',
      preset: {
        worker: {
          concurrentJobs: settings.concurrency,
          maxPoolSize: settings.concurrency + 2,
          pollInterval: 100,
          localQueue: { size: settings.localQueue },
          completeJobBatchDelay: settings.completeDelayMs,
          failJobBatchDelay: settings.completeDelayMs,
        },
      },
      taskList: { [task]: (payload) => delivered(1, () => payload.id) },
    })
    return { stop: () => runner.stop() }
  },

  async check(pool, _events) {
    const { rows } = await pool.query('select count(*)::int as left from graphile_worker.jobs')
    if (rows[0].left !== 0) throw new Error(`graphile-worker left ${rows[0].left} jobs`)
  },
}
