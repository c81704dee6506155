// The end of a run: the last lines of the history from the database, then both checkers.

import { duplicateBounds } from './bound.mjs'
import { catalogueState } from './catalogue.mjs'
import { beyond, checkHistory, violationsOf } from './check.mjs'
import { checkDatabase, cursors } from './check-sql.mjs'
import { readHistory } from './history.mjs'
import { reachedBy } from './reached.mjs'
import { say, withClient } from './stage.mjs'

const exports = {
  row: `select d.subscription as sub, e.payload->>'key' as key, d.state from outbox.delivery d
          join outbox.event e on e.id = d.event_id`,
  open: `select c.subscription as sub, e.payload->>'key' as key from (${cursors}) c
          join outbox.log l on (c.lanes = 1 or l.lane = c.lane) and l.pos > c.pos join outbox.event e on e.id = l.event_id
         union all select s.name, e.payload->>'key' from outbox.subscription s, outbox.event e
          where not exists (select from outbox.log l where l.event_id = e.id)`,
  done: 'select tx from chaos.tx',
  version: 'select id as agg, version::int as v from chaos.row where version > 0',
}

/** What the triggers of audit-sql.mjs saw of leases that ran out, and other figures for the bound on repeats. */
const forBound = {
  taken: `
    select t.subscription as sub, t.lane, from_whom as "from", extract(epoch from t.at)::float8 * 1000 as at,
           extract(epoch from u.at)::float8 * 1000 as until,
           (select array_agg(distinct o.by) from chaos.lane_audit o where o.subscription = t.subscription and o.lane = t.lane
               and o.pos is null and o.n between t.n and coalesce(u.n, o.n)) as owners
      from (select *, lag(fence) over w as fence0, lag(owner) over w as owner0, lag(by) over w as from_whom
              from chaos.lane_audit where pos is null window w as (partition by subscription, lane order by n)) t
      left join lateral (select d.n, d.at from chaos.lane_audit d
                          where d.subscription = t.subscription and d.lane = t.lane and d.n > t.n and d.pos is null
                            and d.again is false and exists (select from chaos.lane_audit a
                              where a.subscription = d.subscription and a.lane = d.lane and a.n between t.n and d.n and a.again)
                          order by d.n limit 1) u on true
     where fence > fence0 and owner0 is not null`,
  replayed: 'select journey::text as id, max(coalesce(stop, pos))::int as to from outbox.replay group by journey',
  members: `select l.lane, e.aggregate_type as type, count(distinct e.aggregate_id)::int as n
              from outbox.log l join outbox.event e on e.id = l.event_id group by 1, 2`,
}

/** `faults`: how often each kind happened. */
export async function judge(stage, faults = {}, samples = { blocked: 0 }) {
  const { broken, reached, entries } = await withClient(stage.url, async (client) => {
    for (const [k, text] of Object.entries({ ...exports, ...(stage.audit && forBound) })) {
      const { rows } = await client.query(text)
      stage.history.writeAll(rows.map((row) => ({ k, ...row })))
    }
    await exportTables(stage, client)
    const entries = readHistory(stage.historyFolder)
    const broken = await checkDatabase(client, { crashed: faults['db-crash'] > 0, audit: stage.audit })
    return { entries, broken, reached: stage.audit ? await reachedBy(client, entries, samples) : {} }
  })
  const { violations, ...counts } = checkHistory(entries)
  const bounds = duplicateBounds(entries)
  tell(stage, entries, [...violations, ...beyond(counts, bounds).map(tooMany(bounds))], broken)
  const ok = violationsOf(counts, bounds) === 0 && broken.length === 0
  const duplicatesBound = Object.values(bounds).reduce((sum, { all }) => sum + all, 0)
  return { ...counts, duplicatesBound, duplicatesBoundBy: bounds, ok, broken, reached, entries }
}

async function exportTables(stage, client) {
  for (const { name } of stage.subscriptions.filter(({ table }) => table)) {
    const rows = await catalogueState(client)
    stage.history.writeAll(rows.map((row) => ({ k: 'state', sub: name, ...row })))
  }
}

const tooMany =
  (bounds) =>
  ({ sub, count }) =>
    `duplicates: ${sub} ${count}, allowed ${JSON.stringify(bounds[sub])}`

function tell(stage, entries, violations, broken) {
  const some = entries.filter(({ k }) => k === 'some')
  const names = new Map()
  for (const { name } of some) names.set(name, (names.get(name) ?? 0) + 1)
  say(`seen by the workers: ${[...names].map(([name, count]) => `${name} ${count}`).join(', ')}`)
  for (const { says, during, subscription, count } of unique(some.filter((e) => e.name === 'error'))) {
    say(`  ${count} × error in ${during} ${subscription ?? ''}: ${says}`)
  }
  for (const entry of entries.filter(({ k }) => k === 'writer-error').slice(0, 5)) {
    say(`  writer, ${entry.tx}: ${entry.says}`)
  }
  for (const text of [...violations, ...broken]) say(`✗ ${text}`)
  if (violations.length + broken.length > 0) say(`  seed ${stage.options.seed}`)
}

function unique(errors) {
  const found = new Map()
  for (const error of errors) {
    const at = `${error.during}${error.says}`
    found.set(at, { ...error, count: (found.get(at)?.count ?? 0) + 1 })
  }
  return [...found.values()].sort((a, b) => b.count - a.count).slice(0, 8)
}
