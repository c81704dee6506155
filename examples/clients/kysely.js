// Kysely: emit on the trx of db.transaction(); controlled transactions work the same way.

import * as kysely from 'kysely'
import pg from 'pg'
import { orderPlaced } from './events.js'

export function connect(connectionString, { Kysely, PostgresDialect } = kysely) {
  return new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString }) }) })
}
export const close = (db) => db.destroy()

export async function placeOrder(db, outbox, order) {
  await db.transaction().execute(async (trx) => {
    await trx.insertInto('orders').values(order).execute()
    await outbox.emit(trx, orderPlaced(order))
    await trx
      .updateTable('stock')
      .set((eb) => ({ amount: eb('amount', '-', 1) }))
      .where('item', '=', order.item)
      .execute()
  })
}

export async function importOrders(db, outbox, orders) {
  await db.transaction().execute(async (trx) => {
    await trx.insertInto('orders').values(orders).execute()
    await outbox.emit(trx, orders.map(orderPlaced))
  })
}
