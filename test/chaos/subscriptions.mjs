// Who listens in a run: every policy that the engine promises something about, at once. The checker
// reads these definitions from the history, not from here.

import { batchCount, concurrency } from './options.mjs'

const every = { batch: { count: batchCount } }

/**
 * `keepsOrder` is what the sink says of itself. `versions`: the destination keeps the highest
 * position; without, the last write wins. `effects`: one effect per event, in a ledger. `tasks`: it
 * answers with tasks. `loops`: claim loops of one worker. The rest is the subscription.
 */
export const all = [
  { name: 'webhook', keepsOrder: false, ...every },
  { name: 'search', keepsOrder: false, coalesce: 'latest', ...every },
  { name: 'index', keepsOrder: false, versions: true, coalesce: 'latest', ...every },
  { name: 'broker', keepsOrder: false, order: 'none', aggregates: ['row'], ...every },
  { name: 'partner', keepsOrder: true, lanes: 1, ...every },
  { name: 'mail', effects: true, order: 'none', aggregates: ['tile'], batch: { count: 5 } },
  { name: 'tasks', tasks: true, keepsOrder: true, coalesce: 'latest', ...every },
  { name: 'queue', tasks: true, keepsOrder: true, aggregates: ['tile'], ...every },
]

/** An index in PostgreSQL, filled from its table: what is rebuilt in the middle of a run. */
export const catalogue = {
  name: 'catalogue',
  table: true,
  versions: true,
  coalesce: 'latest',
  aggregates: ['tile'],
  ...every,
}

export const named = (...names) => all.filter(({ name }) => names.includes(name))

/** What the checker must know. `loops`: claim loops of one worker; `count`: events of a batch. */
export function forHistory({ name, order = 'aggregate', coalesce = 'none', aggregates, lanes, batch, ...kind }) {
  const { versions = false, effects = false, tasks = false, table = false } = kind
  const work = { loops: lanes === 1 ? 1 : concurrency, count: batch.count }
  return { k: 'sub', name, order, coalesce, aggregates, versions, effects, tasks, table, ...work }
}

/** Claim loops of one worker. */
export function loopsOf(subscriptions, concurrency) {
  return subscriptions.reduce((sum, { lanes }) => sum + (lanes === 1 ? 1 : concurrency), 0)
}
