// What one transaction of the writers does: which rows, how often, and how it ends. Chosen by the
// seed alone.

import { between, zipf } from './random.mjs'

export const aggregateCount = 500

/** The first four fifths are rows, the rest tiles: filters by aggregate type have work. */
export function aggregates() {
  const numbered = Array.from({ length: aggregateCount }, (_, index) => nameOf(index))
  return ['row/hot', 'row/open', ...markerAggregates(), ...lateAggregates(), ...numbered]
}

/** Rows of the harness that only the fault `later` changes: what it says last stays said. */
export function lateAggregates() {
  return Array.from({ length: 24 }, (_, index) => `row/l${String(index).padStart(2, '0')}`)
}

/** Rows of the harness: enough that most lanes have one. */
export function markerAggregates() {
  return Array.from({ length: 24 }, (_, index) => `row/m${String(index).padStart(2, '0')}`)
}

function nameOf(index) {
  const type = index % 5 === 4 ? 'tile' : 'row'
  return `${type}/${String(index).padStart(3, '0')}`
}

/**
 * `hot`: share of events that belong to one row; `skew`: of the others; `oddities`: everything
 * that is no plain commit.
 */
export function makePlanner(random, { hot = 0.1, skew = 1.1, oddities = true }) {
  const rank = zipf(random, aggregateCount, skew)
  const chance = (share) => oddities && random() < share
  return () => {
    if (chance(0.002)) return huge(random, rank)
    if (chance(0.005)) return preparedPlan(random)
    return {
      changes: withHot(
        random,
        hot,
        changes(between(random, 1, 5), () => nameOf(rank())),
      ),
      end: chance(0.1) ? 'rollback' : 'commit',
      savepoint: chance(0.1),
      repeatable: chance(0.03),
      async: chance(0.05),
    }
  }
}

/** Each aggregate once, sorted: locks are taken in one order by everybody. */
function changes(count, choose) {
  const chosen = new Set(Array.from({ length: count }, choose))
  return [...chosen].sort().map((aggregate) => ({ aggregate, times: 1 }))
}

/** The hot row is changed several times by few transactions: its lock must not set the pace. */
function withHot(random, share, list) {
  const times = between(random, 1, 4)
  if (random() >= share * 1.35) return list
  const all = [...list, { aggregate: 'row/hot', times }]
  return all.sort((a, b) => (a.aggregate < b.aggregate ? -1 : 1))
}

function huge(random, rank) {
  const list = changes(20, () => nameOf(rank()))
  for (const change of list) change.times = between(random, 8, 16)
  return { changes: list, end: 'commit' }
}

/** Waits prepared, with its locks: on rows that few others want. */
function preparedPlan(random) {
  const list = changes(3, () => nameOf(between(random, 300, aggregateCount - 1)))
  return { changes: list, end: 'prepare', preparedMs: between(random, 0, 1_500) }
}
