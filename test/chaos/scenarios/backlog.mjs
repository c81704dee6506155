// A destination slower than its events: the backlog lasts for the whole run. What has to happen beside live
// delivery must happen all the same: a replay ends, and the newest states are sent again after a take-over.
// Workers are frozen in the middle of calls whose sink does not heed its signal: none of them may hang.

import { setTimeout as pause } from 'node:timers/promises'
import { finish, journeysBy } from '../faults/operators.mjs'
import { carryOut } from '../faults.mjs'
import { judge } from '../judge.mjs'
import * as stages from '../stage.mjs'
import { withStage } from './chaos.mjs'

/** With six claim loops about 200 events a second. */
const slow = { name: 'slow', keepsOrder: true, coalesce: 'latest', heedless: true, latencyMs: 150, batch: { count: 5 } }
const warmUpMs = 3_000
const drainMs = 90_000
/** Positions, from the lane that is furthest: few enough to be sent in a second. */
const replayed = 100
/** A second send may come this much later than one call deadline after the take-over. */
const secondSendLateMs = 5_000

const BACKLOG = `select count(*)::int as n from outbox.log l join lateral outbox.cursor_of('slow', l.lane) c on true
  where l.pos > c.pos`
const LATE = `select count(*)::int as n from outbox.lane
  where again_at < clock_timestamp() - $1 * interval '1 millisecond'`
const DELIVERED = `select max(c.pos)::int as n from outbox.lane l
  cross join lateral outbox.cursor_of(l.subscription, l.lane) c where l.subscription = 'slow'`

export function backlog(options) {
  return withStage(options, { subscriptions: [slow] }, play)
}

/** One worker is killed, then the others are frozen, again and again; a replay meanwhile. */
function planOf({ seconds, leaseMs }) {
  const plan = [{ name: 'worker-kill', atMs: 1_000, who: 'worker-1', mode: 'accept', sub: 'any' }]
  for (let atMs = 1_500, turn = 0; atMs + leaseMs * 2 < seconds * 1_000; atMs += leaseMs * 2.5, turn++) {
    plan.push({ name: 'worker-pause', inCall: true, atMs, ms: leaseMs + 1_000, who: `worker-${2 + (turn % 2)}` })
  }
  return [...plan, { name: 'replay', atMs: 2_000, sub: 'slow' }]
}

async function play(stage) {
  const { seconds } = stage.options
  await stages.startSinks(stage)
  await stages.startNetwork(stage)
  await stages.startWorkers(stage)
  await stages.startWriters(stage, { hot: 0, skew: 0, oddities: false })
  await pause(warmUpMs)
  stage.replayFrom = Math.max(1, (await one(stage, DELIVERED)) - replayed)
  const [{ happened }] = await Promise.all([carryOut(stage, planOf(stage.options)), pause(seconds * 1_000)])
  const replays = (await journeysBy(stage, performance.now())).map(({ state }) => state)
  const open = { backlog: await one(stage, BACKLOG), secondSendsLate: await one(stage, LATE, [secondSendLateMs]) }
  stages.say(`${open.backlog} events behind, ${open.secondSendsLate} second sends late, replay ${replays}`)
  const stuck = await stages.stuckWorkers(stage)
  await stages.stopWriters(stage)
  await stage.sinks.ask('quiet')
  // Batches are small, and on a busy machine thousands of events are left.
  stage.limitMs = performance.now() + drainMs
  const drained = await stages.drain(stage, () => finish(stage))
  await stages.stopWorkers(stage)
  stage.stopping = true
  await stage.sinks.ask('stop')
  return conclude(stage, { ...open, replays, stuck, open: drained.open }, await judge(stage, happened))
}

async function one(stage, text, values) {
  return stages.withClient(stage.url, async (client) => (await client.query(text, values)).rows[0].n)
}

function conclude(stage, seen, found) {
  const { seed, seconds, workers } = stage.options
  const { emitted, delivered, duplicates, duplicatesBound, lost, ghosts, orderViolations, stale } = found
  const ended = seen.replays.length > 0 && seen.replays.every((state) => state === 'succeeded')
  const calm = seen.secondSendsLate === 0 && seen.stuck.length === 0 && seen.open === 0
  return {
    scenario: 'backlog',
    ...{ seed, seconds, workers, emitted, delivered, duplicates, duplicatesBound },
    ...{ lost, ghosts, orderViolations, stale, ...seen },
    counts: seen.backlog > 0,
    ok: found.ok && ended && calm && seen.backlog > 0,
  }
}
