// How often each subscription may have been sent something again: every reason that the guarantees
// name, with what it may repeat, from what really happened in this run. docs/operations/chaos.md explains it.
//
//   down       a process ended: {who, polite}          callfail   a call without an answer: {sub, who, cid}
//   taken      a lease that ran out: {sub, lane, from, at, until, owners}; until its second send was done
//   trouble    a call that the destination did not take as a whole: {sub, who, cid}; refused: {sub, by}
//   replay     asked for: {sub, id, from, head}        replayed   how far it really went: {id, to}
//   members    aggregates of a lane: {lane, type, n}   run        {leaseMs}
//   some error during settle or replay: the worker could not settle: {subscription, who}

/** By subscription: how many repeats each reason allows, and `all` of them. */
export function duplicateBounds(entries) {
  const of = groups(entries, ({ k }) => k)
  const run = {
    of,
    leaseMs: of('run')[0]?.leaseMs ?? 0,
    accepted: counted(of('recv'), ({ sub, by }) => `${sub}\n${by}`),
    byCall: counted(of('recv'), ({ sub, cid }) => `${sub}\n${cid}`),
    ends: new Map(of('down').map(({ who, t }) => [who, t])),
  }
  return Object.fromEntries(of('sub').map((sub) => [sub.name, boundOf(sub, run)]))
}

function boundOf(sub, run) {
  // A ledger's repeats are violations of their own; a table keeps no account of them.
  if (sub.effects || sub.table) return { all: 0 }
  const replays = run.of('replay').filter((replay) => replay.sub === sub.name)
  const reasons = {
    kills: kills(sub, run, inHand(sub, replays)),
    lapses: lapses(sub, run, inHand(sub, replays)),
    settles: settles(sub, run, inHand(sub, replays)),
    answers: answers(sub, run),
    again: again(sub, run),
    replays: replays.reduce((sum, replay) => sum + replayed(replay, run), 0),
  }
  return { ...reasons, all: Object.values(reasons).reduce((sum, n) => sum + n, 0) }
}

/** Of one claim loop: a batch being settled and one being sent; a slice of a replay runs beside them. */
function inHand({ count }, replays) {
  return count * (replays.length > 0 ? 3 : 2)
}

/** What all claim loops of a worker had in hand, but no more than it ever sent. */
function ofWorker({ name, loops }, { accepted }, hand, who) {
  return Math.min(loops * hand, accepted.get(`${name}\n${who}`) ?? 0)
}

function kills(sub, run, hand) {
  const killed = run.of('down').filter(({ polite }) => !polite)
  return killed.reduce((sum, { who }) => sum + ofWorker(sub, run, hand, who), 0)
}

/** Leases of a living worker that ran out: those within the length of a lease are one lapse. */
function lapses(sub, run, hand) {
  const living = ({ from, at }) => (run.ends.get(from) ?? Number.POSITIVE_INFINITY) > at
  const of = takenFrom(sub, run).filter(living)
  const lastAt = new Map()
  let sum = 0
  for (const { from, at } of of.sort((a, b) => a.at - b.at)) {
    if (at < (lastAt.get(from) ?? Number.NEGATIVE_INFINITY) + run.leaseMs) continue
    lastAt.set(from, at)
    sum += ofWorker(sub, run, hand, from)
  }
  return sum
}

function takenFrom({ name }, { of }) {
  return of('taken').filter(({ sub }) => sub === name)
}

/** A settle without an answer leaves one claim loop in doubt; that of a replay repeats its slice. */
function settles({ name, count }, { of }, hand) {
  const errors = of('some').filter((entry) => entry.name === 'error' && entry.subscription === name)
  const during = (what) => errors.filter((entry) => entry.during === what).length
  return during('settle') * hand + during('replay') * count
}

/** Accepted, and the caller did not hear of it. */
function answers({ name }, { of, byCall }) {
  const failed = of('callfail').filter(({ sub }) => sub === name)
  return failed.reduce((sum, { cid }) => sum + (byCall.get(`${name}\n${cid}`) ?? 0), 0)
}

/**
 * After a lease ran out: the newest state of the lane's aggregates once more. A try that fails is repeated:
 * what its last call took is counted here or in `answers`, earlier calls are repeated as well.
 */
function again(sub, run) {
  const wins = (sub.order === 'aggregate' || sub.coalesce === 'latest') && !sub.versions
  const taken = wins ? takenFrom(sub, run) : []
  if (taken.length === 0) return 0
  const firsts = taken.reduce((sum, one) => {
    const members = membersOf(sub, run, one.lane)
    return sum + members * (1 + failures(sub, run, one, members > sub.count).length)
  }, 0)
  const partly = run.of('trouble').filter(({ name, sub: of }) => name === 'item' && of === sub.name)
  return partly.reduce((sum, { cid }) => sum + (run.byCall.get(`${sub.name}\n${cid}`) ?? 0), firsts)
}

/** Statements that failed while the second send was due, and calls, if it needs several. */
function failures({ name }, { of }, { at, until, owners }, several) {
  const during = ({ t, who, by }) => t >= at && t <= (until ?? t) && owners.includes(by ?? who)
  const statements = of('some').filter((entry) => entry.name === 'error' && entry.subscription === name)
  const calls = several ? [...of('callfail'), ...of('trouble'), ...of('refused')] : []
  return [...statements, ...calls.filter(({ sub }) => sub === name)].filter(during)
}

/** A subscription with one lane has all aggregates in it. */
function membersOf({ aggregates, loops }, { of }, lane) {
  const heard = of('members').filter(({ type }) => aggregates == null || aggregates.includes(type))
  return heard.filter((one) => loops === 1 || one.lane === lane).reduce((sum, { n }) => sum + n, 0)
}

/** From its first position to where the live cursor was when it began. */
function replayed({ id, from, head }, { of }) {
  const to = of('replayed').find((one) => one.id === id)?.to ?? head
  return Math.max(head, to) - from + 1
}

function groups(entries, key) {
  const found = new Map()
  for (const entry of entries) {
    const group = found.get(key(entry))
    if (group === undefined) found.set(key(entry), [entry])
    else group.push(entry)
  }
  return (name) => found.get(name) ?? []
}

function counted(entries, key) {
  const found = new Map()
  for (const entry of entries) found.set(key(entry), (found.get(key(entry)) ?? 0) + 1)
  return found
}
