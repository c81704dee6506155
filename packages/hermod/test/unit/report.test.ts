// What a listener hears of one call: how many events and bytes, and what became of them.

import { expect, it } from 'vitest'
import { DeliveredEvent } from '../../src/event.ts'
import { delivered, retry } from '../../src/sinks/outcome.ts'
import type { DeliveryEvent } from '../../src/telemetry.ts'
import { tellCall } from '../../src/worker/report.ts'

const entryOf = (position: bigint, payloadText: string) => ({
  event: new DeliveredEvent({
    id: position,
    position,
    lane: 3,
    type: 'document.created',
    aggregateType: 'document',
    aggregateId: String(position),
    version: 1,
    headersText: null,
    createdAt: 0,
    payloadText,
    attempt: 1,
  }),
  lane: 3,
  mark: null,
  attempts: 0,
  gone: false,
})

it('a call is told with the bytes of its payloads and a count of each outcome', () => {
  const heard: DeliveryEvent[] = []
  const station = {
    listener: { delivery: (event: DeliveryEvent) => heard.push(event) },
    subscription: { name: 'search', sink: { name: 'memory' } },
  }
  const entries = [entryOf(7n, '{"a":1}'), entryOf(9n, '"é"')]
  tellCall(station as never, entries, [delivered(), retry({ message: 'later' })], 12)
  expect(heard).toMatchObject([
    { lane: 3, from: 7n, to: 9n, events: 2, bytes: 7 + 4, outcomes: { delivered: 1, retry: 1 } },
  ])
})
