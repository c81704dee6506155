/**
 * One transaction of some work and some events, the way the system wants it done: with the helper it
 * brings along, or by hand with its enqueue in between.
 */
export async function transact(producer, client, batch, work = async () => {}) {
  if (producer.transaction !== undefined) return producer.transaction(work, batch)
  await client.query('begin')
  await work(client)
  await producer.enqueue(client, batch)
  await client.query('commit')
  producer.committed()
}
