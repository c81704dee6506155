// The end of a run: the last lines of the history from the database, then both checkers.

import { catalogueState } from './catalogue.mjs'
import { checkHistory, duplicatesBound, violationsOf } from './check.mjs'
import { checkDatabase, cursors } from './check-sql.mjs'
import { readHistory } from './history.mjs'
import { concurrency } from './options.mjs'
import { reachedBy } from './reached.mjs'
import { say, withClient } from './stage.mjs'
import { loopsOf } from './subscriptions.mjs'

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

/** Faults that interrupt one worker; a crash interrupts all of them. */
const ofOne = [
  'worker-kill',
  'worker-pause',
  'backend-cut',
  'pool-exhausted',
  'db-mute',
  'db-hole',
  'db-slow',
  'db-cut',
  'db-slices',
]
const ofOneSink = ['sink-mute', 'sink-hole', 'sink-slow', 'sink-cut', 'sink-cut-answer', 'sink-slices']
const ofAll = ['db-crash', 'sink-refuse', 'sink-hang', 'sink-503']

/** `faults`: how often each kind happened. */
export async function judge(stage, faults = {}, samples = { blocked: 0 }) {
  const { broken, reached, entries } = await withClient(stage.url, async (client) => {
    for (const [k, text] of Object.entries(exports)) {
      const { rows } = await client.query(text)
      stage.history.writeAll(rows.map((row) => ({ k, ...row })))
    }
    await exportTables(stage, client)
    const entries = readHistory(stage.historyFolder)
    const broken = await checkDatabase(client, { crashed: faults['db-crash'] > 0, audit: stage.audit })
    return { entries, broken, reached: stage.audit ? await reachedBy(client, entries, samples) : {} }
  })
  const { violations, ...counts } = checkHistory(entries)
  const bound = boundOf(stage, faults, entries)
  tell(stage, entries, violations, broken)
  const ok = violationsOf(counts, bound) === 0 && broken.length === 0
  return { ...counts, duplicatesBound: bound, ok, broken, reached, entries }
}

async function exportTables(stage, client) {
  for (const { name } of stage.subscriptions.filter(({ table }) => table)) {
    const rows = await catalogueState(client)
    stage.history.writeAll(rows.map((row) => ({ k: 'state', sub: name, ...row })))
  }
}

/** I4, and what a replay was asked to send again. */
function boundOf(stage, faults, entries) {
  const count = (names) => names.reduce((total, name) => total + (faults[name] ?? 0), 0)
  const lines = (kind) => entries.filter(({ k }) => k === kind)
  const { workers } = stage.options
  const lost = lines('lost-answer').length + lines('cutcall').length + lines('pause').length
  const ofWorkers = lines('fault').filter(({ happened, who }) => happened && who === 'workers').length
  const interruptions = count(ofOne) + count(ofOneSink) + (count(ofAll) + ofWorkers) * workers + lost
  const batchCount = Math.max(...stage.subscriptions.map(({ batch }) => batch.count))
  const loops = loopsOf(stage.subscriptions, concurrency)
  const replayed = lines('replay').reduce((total, { from, head }) => total + (head - from + 1), 0)
  // While it runs it meets what is delivered live meanwhile.
  return duplicatesBound({ interruptions, loops, batchCount }) + 2 * replayed
}

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
