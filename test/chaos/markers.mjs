// Changes that the harness makes itself. Markers: when a fault is over, one row for each of many lanes;
// how long every subscription takes to accept them is the recovery.

import { withClient } from './stage.mjs'
import { markerAggregates } from './workload.mjs'

const CHANGE = `with tx as (insert into chaos.tx (tx, events) values ($3, $4))
  select id, version from chaos.change($1, $2)`
const EMIT = `select outbox.emit('thing.changed', split_part($2, '/', 1), split_part($2, '/', 2),
  json_build_object('key', $1::text, 'tx', $3::text, 'v', $4::int))`

/** `after`: the kind of fault that is over. */
export async function mark(stage, after) {
  const endedAt = Date.now()
  const tx = await change(stage, 'mark', markerAggregates())
  if (tx !== undefined) stage.history.write({ k: 'marker', tx, after, endedAt })
}

/** Changes these rows once, as a writer does. The name of the transaction, or nothing where it cannot be done. */
export async function change(stage, name, ids) {
  stage.changes = (stage.changes ?? 0) + 1
  for (let attempt = 1; attempt <= 20; attempt++) {
    const tx = `${name}-${stage.changes}.${attempt}`
    if (await tried(stage, tx, ids)) return tx
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return undefined
}

async function tried(stage, tx, ids) {
  let sent = false
  try {
    await withClient(stage.url, async (client) => {
      await client.query('begin')
      const { rows } = await client.query(CHANGE, [ids, ids.map(() => 1), tx, ids.length])
      const ev = rows.map(({ id, version }, index) => [`${tx}-${index}`, id, version])
      for (const [key, id, v] of ev) await client.query(EMIT, [key, id, tx, v])
      stage.history.write({ k: 'try', tx, ev })
      sent = true
      await client.query('commit')
    })
    stage.history.write({ k: 'ack', tx })
    return true
  } catch {
    if (sent) stage.history.write({ k: 'cut', tx })
    return false
  }
}
