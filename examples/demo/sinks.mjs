// Two destinations in memory, of the two kinds there are: an index that can be told twice, and mail,
// where every message is tracked by a row of its own.

import { setTimeout as pause } from 'node:timers/promises'
import { delivered, unavailable } from '../../packages/hermod/dist/sinks/index.js'

/** Keeps the newest state of each document. Says `unavailable` while it is away. */
export function searchSink() {
  const documents = new Map()
  const sink = {
    name: 'search',
    capabilities: { keepsOrder: true },
    documents,
    away: false,
    count: 0,
    async deliver(events) {
      if (sink.away) {
        const away = unavailable({ code: 'ECONNREFUSED', message: 'search does not answer' })
        return events.map(() => away)
      }
      for (const { aggregateId, payload } of events) documents.set(aggregateId, payload)
      sink.count += events.length
      return events.map(() => delivered())
    },
  }
  return sink
}

/** Records `sending` right before each message leaves; a message takes a moment. */
export function mailSink() {
  const sink = {
    name: 'mail',
    capabilities: { ledger: true, itemsMax: 20 },
    count: 0,
    async deliver(events, context) {
      const outcomes = []
      for (const event of events) {
        await context.sending(event)
        await pause(2)
        sink.count++
        outcomes.push(delivered(`<${event.position}@demo.invalid>`))
      }
      return outcomes
    },
  }
  return sink
}
