// TypeORM: emit on the manager of dataSource.transaction(), or on a QueryRunner of your own.

import { DataSource, EntitySchema } from 'typeorm'
import { orderPlaced } from './events.js'

const Order = new EntitySchema({
  name: 'orders',
  columns: { id: { type: 'text', primary: true }, item: { type: 'text' } },
})
const Stock = new EntitySchema({
  name: 'stock',
  columns: { item: { type: 'text', primary: true }, amount: { type: 'int' } },
})

export function connect(url) {
  return new DataSource({ type: 'postgres', url, entities: [Order, Stock] }).initialize()
}
export const close = (dataSource) => dataSource.destroy()

export async function placeOrder(dataSource, outbox, order) {
  await dataSource.transaction(async (manager) => {
    await manager.insert(Order, order)
    await outbox.emit(manager, orderPlaced(order))
    await manager.decrement(Stock, { item: order.item }, 'amount', 1)
  })
}

export async function importOrders(dataSource, outbox, orders) {
  const runner = dataSource.createQueryRunner()
  try {
    await runner.startTransaction()
    await runner.manager.insert(Order, orders)
    await outbox.emit(runner, orders.map(orderPlaced))
    await runner.commitTransaction()
  } catch (error) {
    await runner.rollbackTransaction()
    throw error
  } finally {
    await runner.release()
  }
}
