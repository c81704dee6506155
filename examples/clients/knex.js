// Knex: emit on the trx of knex.transaction(), before it is committed.

import knexFactory from 'knex'
import { orderPlaced } from './events.js'

export const connect = (connection) => knexFactory({ client: 'pg', connection })
export const close = (knex) => knex.destroy()

export async function placeOrder(knex, outbox, order) {
  await knex.transaction(async (trx) => {
    await trx('orders').insert(order)
    await outbox.emit(trx, orderPlaced(order))
    await trx('stock').where('item', order.item).decrement('amount', 1)
  })
}

export async function importOrders(knex, outbox, orders) {
  await knex.transaction(async (trx) => {
    await trx('orders').insert(orders)
    await outbox.emit(trx, orders.map(orderPlaced))
  })
}
