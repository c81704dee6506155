// Random histories of upserts and deletions through real subscriptions, one for each engine: answers
// are lost so that events come again, and calls of any age are replayed after newer ones. Whatever
// happens, every engine ends with the newest state of every document.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import type { OutboxEvent } from '../../src/event.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { type SearchEngine, searchSink } from '../../src/sinks/search/index.ts'
import { type DeliveryContext, isParked, retry, type Sink } from '../../src/sinks/sink.ts'
import { drain } from '../../src/testing/index.ts'
import { everyEngine } from '../support/every-engine.ts'

const db = useDatabase()
const index = `never_${Date.now().toString(36)}`
const closers: (() => Promise<unknown>)[] = []
const stages = new Map<string, Stage>()
let outbox: Outbox

/** A sink that remembers every call, and loses the answers it is told to lose. */
class Stage implements Sink {
  readonly name = 'stage'
  readonly engine: SearchEngine
  readonly calls: OutboxEvent[][] = []
  losing: boolean[] = []
  readonly #sink: Sink

  constructor(engine: SearchEngine) {
    this.engine = engine
    this.#sink = searchSink(engine, { index })
  }

  get capabilities() {
    return this.#sink.capabilities ?? {}
  }

  async deliver(events: readonly OutboxEvent[], context: DeliveryContext) {
    this.calls.push([...events])
    const result = await this.#sink.deliver(events, context)
    if (!this.losing.shift()) return result
    if (isParked(result)) await this.#settled(result.parked)
    return events.map(() => retry({ code: 'LOST', message: 'the answer was lost' }))
  }

  poll(handles: readonly string[], context: { signal: AbortSignal; subscription: string }) {
    return this.#sink.poll?.(handles, context) ?? Promise.resolve(handles.map(() => undefined))
  }

  /** An old call, as it was. */
  async replay(pick: number): Promise<void> {
    const events = this.calls[pick % Math.max(1, this.calls.length)]
    if (events === undefined) return
    const { signal } = new AbortController()
    const context = { signal, subscription: 'replay', deadlineMs: 10_000, sending: async () => {}, answered: () => {} }
    const result = await this.#sink.deliver(events, context)
    if (isParked(result)) return this.#settled(result.parked)
    const good = (result ?? []).map(({ outcome }) => outcome)
    expect(good.filter((name) => name !== 'delivered' && name !== 'superseded')).toEqual([])
  }

  async #settled(handle: string): Promise<void> {
    const { signal } = new AbortController()
    for (;;) {
      const [outcome] = await this.poll([handle], { signal, subscription: 'replay' })
      if (outcome !== undefined) return
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

beforeAll(async () => {
  outbox = createOutbox({ pool: db.pool })
  for (const [name, open] of Object.entries(everyEngine)) {
    const { engine, stop } = await open({ pool: db.pool, index })
    closers.push(stop)
    await engine.ensureIndex(index, { fields: { title: { kind: 'text' } } })
    const sink = new Stage(engine)
    stages.set(name, sink)
    outbox.subscribe(name, {
      revision: 1,
      types: ['document.*'],
      coalesce: 'latest',
      from: 'beginning',
      sink,
      retry: { baseMs: 1, factor: 1, capMs: 1, jitter: 0, attemptsMax: 100 },
    })
  }
  await outbox.start({ pollMs: 20, busyPollMs: 5, concurrency: 1, upkeep: false })
})

afterAll(async () => {
  await outbox.close()
  for (const close of closers) await close()
})

const ids = ['a', 'b', 'c', 'd']
const write = fc.record({ id: fc.constantFrom(...ids), deletes: fc.boolean() })
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ writes: fc.array(write, { minLength: 1, maxLength: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ replays: fc.array(fc.nat(20), { maxLength: 3 }) }) },
)
const history = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 6 }),
  losing: fc.array(fc.boolean(), { maxLength: 6 }),
  atEnd: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
})

let round = 0
let count = 0

describe('an old event', () => {
  it(`never wins, in ${Object.keys(everyEngine).join(', ')}`, async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, losing, atEnd }) => {
        const prefix = `r${++round}-`
        const newest = new Map<string, string | undefined>()
        for (const stage of stages.values()) {
          stage.calls.length = 0
          stage.losing = [...losing]
        }
        for (const one of steps) {
          if ('writes' in one) await emit(prefix, one.writes, newest)
          else await replayAll(one.replays)
        }
        await drain(outbox)
        await replayAll(atEnd)
        for (const [name, { engine }] of stages) {
          for (const id of ids) {
            const title = (await engine.get(index, prefix + id))?.document.title
            expect([name, id, title]).toEqual([name, id, newest.get(id)])
          }
        }
      }),
      { numRuns: 14, interruptAfterTimeLimit: 15_000 },
    )
  }, 40_000)
})

/** One transaction; what is written last to a document is its newest state. */
async function emit(
  prefix: string,
  writes: readonly { id: string; deletes: boolean }[],
  newest: Map<string, string | undefined>,
): Promise<void> {
  const events = writes.map(({ id, deletes }) => {
    const title = deletes ? undefined : `t${++count}`
    newest.set(id, title)
    return {
      type: deletes ? 'document.deleted' : 'document.updated',
      aggregate: ['document', prefix + id] as const,
      ...(title !== undefined && { payload: { title } }),
    }
  })
  await outbox.transaction((tx) => outbox.emit(tx, events))
}

/** Of all engines at once, after what was written so far has arrived. */
async function replayAll(picks: readonly number[]): Promise<void> {
  await drain(outbox)
  for (const pick of picks) {
    await Promise.all([...stages.values()].map((stage) => stage.replay(pick)))
  }
}
