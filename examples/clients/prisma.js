// Prisma: emit on the tx of an interactive $transaction(); an array of promises has none.

import { PrismaPg } from '@prisma/adapter-pg'
import { orderPlaced } from './events.js'
import { PrismaClient } from './node_modules/.prisma/orders/index.js'

export function connect(connectionString) {
  return new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
}
export const close = (prisma) => prisma.$disconnect()

export async function placeOrder(prisma, outbox, order) {
  await prisma.$transaction(async (tx) => {
    await tx.order.create({ data: order })
    await outbox.emit(tx, orderPlaced(order))
    await tx.stock.update({ where: { item: order.item }, data: { amount: { decrement: 1 } } })
  })
}

export async function importOrders(prisma, outbox, orders) {
  await prisma.$transaction(async (tx) => {
    await tx.order.createMany({ data: orders })
    await outbox.emit(tx, orders.map(orderPlaced))
  })
}
