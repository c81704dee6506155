// Who listens in a run: the policies that the engine promises something about. The checker reads
// these definitions from the history, not from here.

import { batchCount } from './options.mjs'

const every = { batch: { count: batchCount } }

/** `keepsOrder` is what the sink says of itself; the rest is the subscription. */
export const all = [
  { name: 'webhook', keepsOrder: false, ...every },
  { name: 'search', keepsOrder: false, coalesce: 'latest', ...every },
  { name: 'broker', keepsOrder: false, order: 'none', aggregates: ['row'], ...every },
  { name: 'partner', keepsOrder: true, lanes: 1, ...every },
]

export const named = (...names) => all.filter(({ name }) => names.includes(name))

/** What the checker must know. */
export function forHistory({ name, order = 'aggregate', coalesce = 'none', aggregates }) {
  return { k: 'sub', name, order, coalesce, aggregates }
}

/** Claim loops of one worker. */
export function loopsOf(subscriptions, concurrency) {
  return subscriptions.reduce((sum, { lanes }) => sum + (lanes === 1 ? 1 : concurrency), 0)
}
