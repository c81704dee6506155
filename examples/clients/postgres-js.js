// postgres.js: emit on the sql that begin() hands to its callback.

import postgres from 'postgres'
import { orderPlaced } from './events.js'

export const connect = (url) => postgres(url)
export const close = (sql) => sql.end()

export async function placeOrder(sql, outbox, order) {
  await sql.begin(async (sql) => {
    await sql`insert into orders ${sql(order)}`
    await outbox.emit(sql, orderPlaced(order))
    await sql`update stock set amount = amount - 1 where item = ${order.item}`
  })
}

export async function importOrders(sql, outbox, orders) {
  await sql.begin(async (sql) => {
    await sql`insert into orders ${sql(orders)}`
    await outbox.emit(sql, orders.map(orderPlaced))
  })
}
