/**
 * The limit: the same transaction without an outbox, and the same bytes inserted into a bare table
 * with the columns of `outbox.event` and a primary key.
 */

import { aggregateType, type } from '../payload.mjs'
import { openPool } from '../pool.mjs'
import hermod from './hermod.mjs'

const INSERT = `insert into bare_event (type, aggregate_type, aggregate_id, bytes, payload)
  select $1, $2, id, octet_length(payload), payload::json from unnest($3::text[], $4::text[]) as e(id, payload)`

export default {
  name: 'plain',
  schema: 'public',
  settings: {},

  async install(url) {
    await hermod.install(url)
    const pool = openPool(url, 2)
    await pool.query(`create table bare_event
      (like outbox.event including defaults including storage including compression, primary key (id))`)
    await pool.end()
  },

  /** One event: the transaction without an outbox. Many: the bare insert. */
  async producer() {
    return {
      async enqueue(client, items) {
        if (items.length === 1) return
        const ids = items.map(({ aggregateId }) => aggregateId)
        const payloads = items.map(({ payload }) => JSON.stringify(payload))
        await client.query(INSERT, [type, aggregateType, ids, payloads])
      },
      committed() {},
      async end() {},
    }
  },
}
