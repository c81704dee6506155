/** The limit: reads every event once, by key, in pages, and does nothing with it. */
import pg from 'pg'

const [url, events, pageRows] = process.argv.slice(2)
const client = new pg.Client({ connectionString: url })
await client.connect()
const text = `select id, type, aggregate_type, aggregate_id, version, headers::text, payload::text from outbox.event
  where id > $1 order by id limit ${Number(pageRows)}`
let last = '0'
let seen = 0
const started = performance.now()
for (;;) {
  const { rows } = await client.query({ text, name: 'page', values: [last] })
  if (rows.length === 0) break
  seen += rows.length
  last = rows.at(-1).id
}
const seconds = (performance.now() - started) / 1000
if (seen !== Number(events)) throw new Error(`scanned ${seen} of ${events}`)
process.send({ seconds })
await client.end()
