/**
 * A sink that keeps what it is given, in order, and fails on request. It keeps order within a call:
 * after a failure, later events of the same aggregate are refused too.
 */
import type { OutboxEvent } from '../event.ts'
import { type Capabilities, delivered, type Outcome, retry, type Sink } from '../sinks/sink.ts'

export interface MemorySinkOptions {
  readonly name?: string
  readonly capabilities?: Partial<Capabilities>
  /** Decides the outcome of an event; delivered when it returns nothing. */
  readonly answer?: (event: OutboxEvent, call: number) => Outcome | undefined
}

export interface Accepted {
  readonly position: bigint
  readonly type: string
  readonly aggregateId: string
  readonly payload: unknown
  readonly absent: boolean
  readonly attempt: number
  readonly call: number
  readonly headers: Readonly<Record<string, string>>
}

export interface MemorySink extends Sink {
  /** Everything accepted so far, in order. */
  readonly accepted: readonly Accepted[]
  /** How many events each call had. */
  readonly calls: readonly number[]
  /** Replaces the function that decides outcomes. */
  answer(answer: MemorySinkOptions['answer']): void
  clear(): void
}

export function memorySink(options: MemorySinkOptions = {}): MemorySink {
  const accepted: Accepted[] = []
  const calls: number[] = []
  let answer = options.answer
  const ledger = options.capabilities?.ledger ?? false
  return {
    name: options.name ?? 'memory',
    capabilities: { keepsOrder: true, perItemResult: true, ...options.capabilities },
    accepted,
    calls,
    answer: (next) => {
      answer = next
    },
    clear: () => {
      accepted.length = 0
      calls.length = 0
    },
    async deliver(events, context) {
      const call = calls.push(events.length)
      const failed = new Set<string>()
      const outcomes: Outcome[] = []
      for (const event of events) {
        if (ledger) await context.sending(event)
        const key = `${event.aggregateType}/${event.aggregateId}`
        const outcome = failed.has(key) ? retry({ code: 'behind' }) : (answer?.(event, call) ?? delivered())
        if (outcome.outcome === 'delivered') accepted.push(acceptedOf(event, call))
        else failed.add(key)
        outcomes.push(outcome)
      }
      return outcomes
    },
  }
}

function acceptedOf(event: OutboxEvent, call: number): Accepted {
  const { position, type, aggregateId, absent, attempt, headers, payload } = event
  return { position, type, aggregateId, payload, absent, attempt, call, headers }
}
