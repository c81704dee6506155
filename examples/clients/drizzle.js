// Drizzle: emit on the tx of db.transaction(), whatever driver is below.

import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import { orderPlaced } from './events.js'

const orders = pgTable('orders', { id: text().primaryKey(), item: text() })
const stock = pgTable('stock', { item: text().primaryKey(), amount: integer() })

export const connect = (url) => drizzle(url)
export const close = (db) => db.$client.end()

export async function placeOrder(db, outbox, order) {
  await db.transaction(async (tx) => {
    await tx.insert(orders).values(order)
    await outbox.emit(tx, orderPlaced(order))
    const amount = sql`${stock.amount} - 1`
    await tx.update(stock).set({ amount }).where(eq(stock.item, order.item))
  })
}

export async function importOrders(db, outbox, many) {
  await db.transaction(async (tx) => {
    await tx.insert(orders).values(many)
    await outbox.emit(tx, many.map(orderPlaced))
  })
}
