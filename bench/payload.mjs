/** What every system carries: the same events, with about 400 bytes of JSON each. */

export const type = 'document.updated'
export const aggregateType = 'document'
const aggregates = 50_000
const words = 'the quick outbox carries every committed row to whoever asked for it and never forgets one '
const body = words.repeat(5).slice(0, 366)

/** Event number `id` of a run. */
export function item(id) {
  const aggregateId = String((id * 7919) % aggregates)
  return { id, aggregateId, payload: { id, title: `Document ${aggregateId}`, body } }
}

export function items(from, count) {
  return Array.from({ length: count }, (_, index) => item(from + index))
}
