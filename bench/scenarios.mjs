/**
 * The scenarios, in the order of a run. One file each in `scenarios/`: a name (the figures' first
 * word), a title, its share of a quick run's time, sizes per mode, and `run(bench)`, which answers
 * with figures and raw results. A new one is a file and a line here.
 */
import api from './scenarios/api.mjs'
import bulk from './scenarios/bulk.mjs'
import cost from './scenarios/cost.mjs'
import drain from './scenarios/drain.mjs'
import emit from './scenarios/emit.mjs'
import fanout from './scenarios/fanout.mjs'
import growth from './scenarios/growth.mjs'
import latency from './scenarios/latency.mjs'
import steady from './scenarios/steady.mjs'
import subscriptions from './scenarios/subscriptions.mjs'
import workers from './scenarios/workers.mjs'
import xmin from './scenarios/xmin.mjs'

export const scenarios = [
  ...[emit, bulk, drain, steady, latency, growth, xmin, fanout, subscriptions, workers, cost, api],
]

export const sizeOf = ({ sizes }, mode) => sizes[mode] ?? sizes.full
