// pg has no transaction helper: emit on the client that ran BEGIN.

import pg from 'pg'
import { orderPlaced } from './events.js'

export const connect = (connectionString) => new pg.Pool({ connectionString })
export const close = (pool) => pool.end()

export async function placeOrder(pool, outbox, order) {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('insert into orders (id, item) values ($1, $2)', [order.id, order.item])
    await outbox.emit(client, orderPlaced(order))
    await client.query('update stock set amount = amount - 1 where item = $1', [order.item])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

/** The same with the helper that comes with the outbox. */
export async function importOrders(_pool, outbox, orders) {
  await outbox.transaction(async (client, emit) => {
    for (const { id, item } of orders) {
      await client.query('insert into orders (id, item) values ($1, $2)', [id, item])
    }
    emit(orders.map(orderPlaced))
  })
}
