/** Every figure by its name, what it is held against, and how it is written. */

const number = (value) => (value >= 1_000 ? Math.round(value).toLocaleString('en') : String(value))
const times = (value) => `${number(value)} ×`
const atLeast = (bound) => ({ meets: (value) => value >= bound, target: `≥ ${bound}` })
const atMost = (bound) => ({ meets: (value) => value <= bound, target: `≤ ${bound}` })

/** The least of a figure by peer: ahead of the best of them is ahead of all. */
const least = (byPeer) => {
  const values = Object.values(byPeer ?? {}).filter((value) => value !== null)
  return values.length > 0 ? Math.min(...values) : null
}
const leastOf = (pick) => (byPeer) =>
  least(Object.fromEntries(Object.entries(byPeer ?? {}).map(([name, value]) => [name, pick(value)])))

const share = (part, whole) => (part === null || !whole ? null : Number((part / whole).toPrecision(3)))

/** The sizes that were measured, which are smaller in a quick run. */
const sizes = (bySize) => Object.keys(bySize).map(Number).map(number).join(', ')

export const targets = [
  row('emit.vsPlain', 'transactions/s with emit, against the same transaction without', atLeast(0.75)),
  row('emit.vsInsert', 'the same, against an insert into an outbox table of your own', atLeast(1.2), { as: times }),
  row('emit.vsPeers', 'transactions/s, against the best peer', atLeast(1.3), {
    of: least,
    as: times,
  }),
  row('bulk.vsRaw', 'events/s of bulk emit, against a bare insert of the same bytes', atLeast(0.7)),
  row('drain.vsPeers', 'events/s drained, against the best peer', atLeast(5), {
    of: least,
    as: times,
  }),
  row('drain.vsScan', 'events/s drained, against a bare keyset scan', atLeast(0.5)),
  row('steady.eventsPerSecond', 'events/s produced and delivered on the same cores', {}),
  row('steady.vsPeers', 'the same, against the best peer', atLeast(3), { of: least, as: times }),
  row('latency.p50Ms', 'ms from commit to acknowledged at 1,000/s, median', atMost(5)),
  row('latency.p99Ms', 'the same, 99th percentile', atMost(30)),
  row('latency.backlogP99', 'events waiting meanwhile, 99th percentile', atMost(99)),
  row('latency.peers', 'median of the best peer, against ours', atLeast(1), {
    of: (peers, ours) => share(leastOf(({ p50Ms }) => p50Ms)(peers), ours?.p50Ms),
    as: times,
  }),
  row(
    'growth.ratio',
    ({ eventsPerSecond }) => `drain rate over backlogs of ${sizes(eventsPerSecond)}, slowest/fastest`,
    atLeast(0.85),
  ),
  row('xmin.ratio', 'drain rate under a pinned xmin, against without', atLeast(0.9)),
  row('xmin.deadTuples', 'dead tuples in event and log meanwhile', atMost(0)),
  row('fanout.emitRatio', 'emit with 16 subscriptions, against 1', atLeast(0.97)),
  row('fanout.totalRatio', 'total delivered/s to 16 subscriptions, against 1', atLeast(3), {
    as: times,
  }),
  row(
    'subscriptions.p99Ratio',
    ({ count }) => `p99 of 50 busy subscriptions among ${number(count)}, against the 50 alone`,
    atMost(1.5),
    { as: times },
  ),
  row('subscriptions.bytesEach', 'bytes of memory of an idle subscription', atMost(20_000)),
  row('subscriptions.statementsPerSecond', 'statements/s of a worker with all of them idle', {}),
  row('workers.speedup', '4 worker processes on a slow sink, against 1', atLeast(3.5), {
    as: times,
  }),
  row('cost.walBytes', 'bytes of WAL per event', {}),
  row('cost.peers', 'the same, against the peer with the least', atMost(0.5), {
    of: (peers, ours) => share(ours?.walBytes, leastOf(({ walBytes }) => walBytes)(peers)),
    as: times,
  }),
  row('cost.tableBytes', 'bytes of tables and indexes per event', {}),
  row(
    'cost.rssMb',
    ({ rssBacklog }) => `MB of memory of a worker before a backlog of ${number(rssBacklog)}`,
    atMost(160),
  ),
  row('api.vsWithoutOutbox', 'edits/s through the API, against the same server without the outbox', atLeast(0.85)),
  row(
    'api.searchableP99Ms',
    'ms from the answer to an edit to a search that shows it, at 200 requests/s, 99th percentile',
    atMost(250),
  ),
]

function row(name, says, bound, { of = (value) => value, as = number } = {}) {
  return { name, says, of, as, target: bound.target ?? '', meets: bound.meets }
}

/** `{ says, value, target, verdict }` of every figure that was measured. */
export function judged(figures) {
  return targets.flatMap(({ name, says, of, as, target, meets }) => {
    const [scenario, figure] = name.split('.')
    const value = of(figures[scenario]?.[figure] ?? null, figures[scenario])
    if (value === null || value === undefined) return []
    const verdict = meets === undefined ? '' : meets(value) ? 'met' : 'missed'
    const text = typeof says === 'function' ? says(figures[scenario]) : says
    return [{ name, says: text, value: as(value), target, verdict }]
  })
}
