/**
 * Who takes part. A system has a name, a schema, settings with candidates for `tune.mjs`, and:
 *
 *   install(url)                  its tables in an empty database
 *   producer(url)                 { enqueue(client, items), committed(), end() }: inside the caller's transaction,
 *                                 or { transaction(work, items), end() }: with a helper for it
 *   consumer(url, options)        delivers until stop(); stop() returns when everything delivered is settled
 *   check(pool, events)           throws unless exactly these events were delivered and settled
 *   room(pool, events)            (optional) makes room for a large backlog, as its upkeep would have
 */
import { peerNames } from './peers.mjs'

export const ours = 'hermod'
export const systemNames = [ours, ...peerNames]

/** In a measured process: the library itself is loaded. */
export async function readySystem(name) {
  const { default: system } = await import(`./systems/${name}.mjs`)
  await system.load?.()
  return system
}

/** In the conductor: names, settings and candidates only. */
export async function describeSystem(name) {
  const { default: system } = await import(`./systems/${name}.mjs`)
  return system
}
