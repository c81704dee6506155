// The guide docs/guides/first-event.md as one program.

import { createOutbox, migrate } from 'hermod'
import { startPostgres } from 'hermod/embedded'
import pg from 'pg'

const postgres = await startPostgres() // a temporary one: deleted when the program ends
const pool = new pg.Pool({ connectionString: postgres.url() })

await migrate(pool) // the schema `outbox`; safe to call at every start
await pool.query('create table document (id int primary key, title text not null)')

const outbox = createOutbox({ pool })
let arrived = () => {}
const first = new Promise((resolve) => {
  arrived = resolve
})

outbox.subscribe('print', {
  revision: 1,
  types: ['document.*'],
  sink: (events) => {
    for (const event of events) console.log(event.position, event.type, event.payload)
    arrived()
  },
})
const worker = await outbox.start()

await outbox.transaction(async (tx) => {
  await tx.query("insert into document values (7, 'Hello')")
  await outbox.emit(tx, {
    type: 'document.created',
    aggregate: ['document', 7],
    payload: { id: 7, title: 'Hello' },
  })
})
await first

await outbox
  .transaction(async (tx) => {
    await tx.query("update document set title = 'Lost' where id = 7")
    await outbox.emit(tx, { type: 'document.updated', aggregate: ['document', 7], payload: {} })
    throw new Error('changed my mind')
  })
  .catch((error) => console.log('rolled back:', error.message))

const { rows } = await pool.query('select count(*)::int as events from outbox.event')
console.log(rows[0].events) // 1

await worker.stop() // finishes what is in flight, gives its lanes back
await pool.end()
await postgres.destroy()
