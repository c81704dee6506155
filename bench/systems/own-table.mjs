/** What people write themselves: an outbox table of their own, and one more INSERT in the transaction. */
import { aggregateType, type } from '../payload.mjs'
import { openPool } from '../pool.mjs'

const INSERT = `insert into own_outbox (type, aggregate_type, aggregate_id, payload) values ($1, $2, $3, $4)`

export default {
  name: 'own-table',
  schema: 'public',
  settings: {},

  async install(url) {
    const pool = openPool(url, 1)
    await pool.query(`create table own_outbox (
      id bigint generated always as identity primary key, type text not null, aggregate_type text not null,
      aggregate_id text not null, payload jsonb not null, created_at timestamptz not null default now(), sent_at timestamptz);
      create index on own_outbox (id) where sent_at is null`)
    await pool.end()
  },

  async producer() {
    return {
      async enqueue(client, items) {
        for (const { aggregateId, payload } of items)
          await client.query(INSERT, [type, aggregateType, aggregateId, JSON.stringify(payload)])
      },
      committed() {},
      async end() {},
    }
  },
}
