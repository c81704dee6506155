// The one event of these examples.

export const orderPlaced = (order) => ({
  type: 'order.placed',
  aggregate: ['order', order.id],
  payload: order,
})
