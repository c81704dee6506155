/**
 * One transaction of some work and some events on a connection of the pool, the way the system wants
 * it done: with the helper it brings along, or by hand with its enqueue in between.
 */
export async function transact(producer, pool, batch, work = async () => {}) {
  if (producer.transaction !== undefined) return producer.transaction(work, batch)
  const client = await pool.connect()
  await client.query('begin')
  await work(client)
  await producer.enqueue(client, batch)
  await client.query('commit')
  client.release()
  producer.committed()
}
