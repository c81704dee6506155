// The end of a run: the last lines of the history from the database, then both checkers.

import { checkHistory, duplicatesBound, violationsOf } from './check.mjs'
import { checkDatabase } from './check-sql.mjs'
import { readHistory } from './history.mjs'
import { concurrency } from './options.mjs'
import { say, withClient } from './stage.mjs'
import { loopsOf } from './subscriptions.mjs'

const exports = {
  row: `select d.subscription as sub, e.payload->>'key' as key, d.state from outbox.delivery d
          join outbox.event e on e.id = d.event_id`,
  done: 'select tx from chaos.tx',
  version: 'select id as agg, version::int as v from chaos.row where version > 0',
}

/** `faults` are those of the conductor; pauses are what the workers saw of a busy machine. */
export async function judge(stage, faults = {}) {
  const { kills = 0, dbCrashes = 0, outages = 0 } = faults
  const broken = await withClient(stage.url, async (client) => {
    for (const [k, text] of Object.entries(exports)) {
      const { rows } = await client.query(text)
      stage.history.writeAll(rows.map((row) => ({ k, ...row })))
    }
    return checkDatabase(client, { crashed: dbCrashes > 0, audit: stage.audit })
  })
  const entries = readHistory(stage.historyFolder)
  const { violations, ...counts } = checkHistory(entries)
  const pauses = entries.filter(({ k, name }) => k === 'fault' && name === 'pause').length
  // A crash, and an outage that begins in the middle of calls, interrupts every worker.
  const interruptions = kills + pauses + (dbCrashes + outages) * stage.options.workers
  const batchCount = Math.max(...stage.subscriptions.map(({ batch }) => batch.count))
  const loops = loopsOf(stage.subscriptions, concurrency)
  const bound = duplicatesBound({ interruptions, loops, batchCount })
  tell(stage, entries, violations, broken, pauses)
  const ok = violationsOf(counts, bound) === 0 && broken.length === 0
  return { ...counts, duplicatesBound: bound, pauses, ok, entries }
}

function tell(stage, entries, violations, broken, pauses) {
  const some = entries.filter(({ k }) => k === 'some')
  const names = new Map()
  for (const { name } of some) names.set(name, (names.get(name) ?? 0) + 1)
  const seen = [...names].map(([name, count]) => `${name} ${count}`)
  say(`seen by the workers: ${[...seen, `pause ${pauses}`].join(', ')}`)
  for (const { says, during, subscription } of unique(some.filter((e) => e.name === 'error'))) {
    say(`  error in ${during} ${subscription ?? ''}: ${says}`)
  }
  for (const entry of entries.filter(({ k }) => k === 'writer-error').slice(0, 5)) {
    say(`  writer, ${entry.tx}: ${entry.says}`)
  }
  for (const text of [...violations, ...broken]) say(`✗ ${text}`)
  if (violations.length + broken.length > 0) say(`  seed ${stage.options.seed}`)
}

function unique(errors) {
  return [...new Map(errors.map((error) => [`${error.during}${error.says}`, error])).values()].slice(0, 8)
}
