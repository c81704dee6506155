/** The limit of a drain: every event read once, by key, in pages, with the same driver. */
import pg from 'pg'

const page = (rows) => `select id, type, aggregate_type, aggregate_id, version, headers::text, payload::text
  from outbox.event where id > $1 order by id limit ${Number(rows)}`

export async function play(_system, { backlogs, pageRows }) {
  const runs = []
  for (const backlog of backlogs) runs.push(await scan(backlog, pageRows))
  return { runs }
}

async function scan({ url, events }, pageRows) {
  const client = new pg.Client({ connectionString: url })
  const text = page(pageRows)
  const startedMs = performance.now()
  await client.connect()
  let last = '0'
  let seen = 0
  for (;;) {
    const { rows } = await client.query({ text, name: 'page', values: [last] })
    if (rows.length === 0) break
    seen += rows.length
    last = rows.at(-1).id
  }
  const seconds = (performance.now() - startedMs) / 1_000
  await client.end()
  if (seen !== events) throw new Error(`scanned ${seen} of ${events}`)
  return { events, seconds, perSecond: events / seconds }
}
