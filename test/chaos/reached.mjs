// Which hard branches a run reached: an idea of Antithesis. A run in which nothing was taken over
// says little about take-overs. Counted from the histories and from what the triggers wrote down.

/** Numbered although the step before had seen the transaction as running; or not at all yet. */
const LATE = `
  with s as (select pos, snapshot, lag(pos) over w as pos0, lag(snapshot) over w as snapshot0
               from outbox.step window w as (order by id))
  select count(*) filter (where e.xid < pg_snapshot_xmax(s.snapshot0) and not pg_visible_in_snapshot(e.xid, s.snapshot0))::int as "lateCommit",
         count(*) filter (where e.xid >= pg_snapshot_xmax(s.snapshot0))::int as "aboveXmax"
    from s join outbox.log l on l.pos > s.pos0 and l.pos <= s.pos join outbox.event e on e.id = l.event_id
   where s.pos > s.pos0`

/** Rows of coalescing subscriptions that were ever retrying. */
const RETRYING = `
  select distinct d.subscription as sub, e.payload->>'key' as key from chaos.delivery_audit d
    join outbox.subscription s on s.name = d.subscription and s.coalesced
    join outbox.event e on e.id = d.event_id`

const TWO_RETRYING = `
  select count(*)::int as n from chaos.delivery_audit d
    join outbox.subscription s on s.name = d.subscription and s.ordered where d.retrying > 1`

/** Taken from an owner that had not given it back: who, by whom, when, and with a task on the lane. */
const TAKEN = `
  select subscription, from_whom, by, extract(epoch from at) * 1000 as t, was_parked from (
    select subscription, fence, owner, by, at, lag(fence) over w as fence0, lag(owner) over w as owner0,
           lag(by) over w as from_whom, lag(parked) over w as was_parked
      from chaos.lane_audit where pos is null window w as (partition by subscription, lane order by n)) t
   where fence > fence0 and owner0 is not null and owner is distinct from owner0`

/** Needed of a run with these faults; "counts only if" in the report. */
export const needs = {
  lateCommit: ['odd-transactions'],
  takeoverOfLiving: ['worker-pause', 'db-mute'],
  fenced: ['worker-pause', 'db-mute'],
  retryThenSuccess: ['sink-trouble'],
  taskResumed: ['worker-kill', 'late-tasks'],
  stepKilled: ['backend-cut'],
}

export async function reachedBy(client, entries, samples) {
  const one = async (text) => (await client.query(text)).rows[0]
  const taken = (await client.query(TAKEN)).rows
  const some = (name) => entries.filter((entry) => entry.k === 'some' && entry.name === name)
  const coalesced = new Set(
    entries.filter(({ k, coalesce }) => k === 'sub' && coalesce === 'latest').map(({ name }) => name),
  )
  const resumed = some('task-resumed')
  const alive = living(entries)
  return {
    ...(await one(LATE)),
    takeovers: taken.length,
    takeoverOfLiving: taken.filter(({ from_whom: who, t }) => alive(who, Number(t))).length,
    fenced: some('lease-lost').length,
    retryThenSuccess: retried(entries),
    followerBlocked: samples.blocked,
    newerReplacesRetrying: replaced((await client.query(RETRYING)).rows, entries),
    unknownMail: entries.filter(({ k, sub, state }) => k === 'row' && sub === 'mail' && state === 'unknown').length,
    oldWriteLast: some('old-write-last').length,
    taskResumed: resumed.length,
    coalescedTaskCrash: resumed.filter(({ sub }) => coalesced.has(sub)).length,
    twoRetryingRows: (await one(TWO_RETRYING)).n,
    stepKilled: stepsKilled(entries),
  }
}

/** Was this process up at that time? */
function living(entries) {
  const ends = new Map(entries.filter(({ k }) => k === 'down').map(({ who, t }) => [who, t]))
  return (who, t) => (ends.get(who) ?? Number.POSITIVE_INFINITY) > t
}

/** Retrying although their destination never refused them: they took over the row of an older event. */
function replaced(rows, entries) {
  const refused = new Set(entries.filter(({ k }) => k === 'item').map(({ sub, key }) => `${sub}\n${key}`))
  return rows.filter(({ sub, key }) => !refused.has(`${sub}\n${key}`)).length
}

/** Events that the sink refused for now and accepted afterwards. */
function retried(entries) {
  const refused = new Set(entries.filter(({ k }) => k === 'item').map(({ sub, key }) => `${sub}\n${key}`))
  const accepted = new Set(entries.filter(({ k }) => k === 'recv').map(({ sub, key }) => `${sub}\n${key}`))
  return [...refused].filter((pair) => accepted.has(pair)).length
}

function stepsKilled(entries) {
  const cuts = entries.filter(({ k, name, happened }) => k === 'fault' && name === 'backend-cut' && happened)
  return cuts.filter(({ step, state }) => state === 'active' && step).length
}

/** Those that a run with these faults needed and did not reach. */
export function missedOf(reached, { faults, seconds }) {
  if (seconds < 15) return []
  const wanted = Object.entries(needs).filter(([, kinds]) => kinds.every((kind) => faults.includes(kind)))
  return wanted.map(([name]) => name).filter((name) => reached[name] === 0)
}
