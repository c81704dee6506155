/** What every sink must do, as named cases; `needs` names the hook without which one cannot run. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { OutboxEvent } from '../event.ts'
import { capabilitiesOf, isParked, type Outcome, type Sink } from '../sinks/sink.ts'
import {
  assertHandle,
  type CallOptions,
  call,
  callInHalves,
  names,
  pollOnce,
  type SampleEvent,
  sampleEvent,
} from './sink-call.ts'

/** Repairs what a hook has broken. */
export type Repair = () => unknown

/** Breaks the destination for one case. A sentence instead says why the case does not apply. */
export type Break = (() => Repair | Promise<Repair>) | string

export interface ExerciseSinkOptions {
  /** `test` of Vitest, node:test or Jest. */
  test(name: string, run: () => Promise<void>): unknown
  /** An event the destination accepts; called with 0, 1, 2, … */
  readonly event?: (index: number) => SampleEvent
  /** An event the destination refuses for good. */
  readonly bad: SampleEvent | string
  /** An event larger than the sink or the destination takes. */
  readonly oversize: SampleEvent | string
  /** Nothing listens any more. */
  readonly down: Break
  /** It takes the request and never answers. */
  readonly hang: Break
  /** The sink's credentials are no longer accepted. */
  readonly credentials: Break
  /** It asks to be left alone for a while (429, 503 with Retry-After). */
  readonly throttle: Break
  /** Aggregate ids the destination has accepted so far, in order, repeats included. */
  readonly accepted?: () => readonly string[] | Promise<readonly string[]>
  /** Texts that must appear in no outcome: keys, passwords, tokens. */
  readonly secrets?: readonly string[]
}

type Hook = 'bad' | 'oversize' | 'down' | 'hang' | 'credentials' | 'throttle'

interface SinkCase {
  readonly name: string
  readonly needs?: Hook
  run(sink: Sink, options: ExerciseSinkOptions): Promise<void>
}

/** A call that was told to stop must have ended by then. */
const promptMs = 1_000
/** Failed polls in a row before the suite fails. */
const pollsMax = 100

let index = 0
const good = ({ event }: ExerciseSinkOptions, count: number): OutboxEvent[] =>
  Array.from({ length: count }, () => sampleEvent(event?.(index++)))

const special = (options: ExerciseSinkOptions, hook: 'bad' | 'oversize'): OutboxEvent =>
  sampleEvent(options[hook] as SampleEvent)

const batchOf = (sink: Sink): number => Math.min(20, capabilitiesOf(sink).itemsMax)

async function whileBroken(broken: Break, run: () => Promise<void>): Promise<void> {
  const repair = await (broken as Exclude<Break, string>)()
  try {
    await run()
  } finally {
    await repair()
  }
}

function assertAll(outcomes: readonly Outcome[], ...allowed: string[]): void {
  for (const { outcome, message } of outcomes) {
    const says = `expected ${allowed.join(' or ')}, got ${outcome}: ${message ?? ''}`
    assert.ok(allowed.includes(outcome), says)
  }
}

async function assertAccepted(
  { accepted }: ExerciseSinkOptions,
  events: readonly OutboxEvent[],
  expected = true,
): Promise<void> {
  const ids = await accepted?.()
  if (ids === undefined) return
  for (const { aggregateId } of events) {
    const says = `${aggregateId} ${expected ? 'is not' : 'is'} at the destination`
    assert.equal(ids.includes(aggregateId), expected, says)
  }
}

/** Fails as `outcome` while broken, spends nothing, and delivers with the same sink afterwards. */
async function failsThenRecovers(
  sink: Sink,
  options: ExerciseSinkOptions,
  hook: 'down' | 'credentials' | 'throttle',
  check: (outcomes: readonly Outcome[]) => void,
): Promise<void> {
  const events = good(options, Math.min(3, batchOf(sink)))
  await whileBroken(options[hook], async () => check(await call(sink, events, options)))
  assertAll(await call(sink, events, options), 'delivered', 'superseded')
  await assertAccepted(options, events)
}

export const sinkCases: readonly SinkCase[] = [
  {
    name: 'a single event is delivered',
    async run(sink, options) {
      const events = good(options, 1)
      assertAll(await call(sink, events, options), 'delivered')
      await assertAccepted(options, events)
    },
  },
  {
    name: 'a batch is delivered, one outcome per event',
    async run(sink, options) {
      const events = good(options, batchOf(sink))
      assertAll(await call(sink, events, options), 'delivered')
      await assertAccepted(options, events)
    },
  },
  {
    name: 'an empty batch is harmless',
    async run(sink, options) {
      const { signal } = new AbortController()
      const context = { signal, subscription: 'exercise', deadlineMs: 30_000 }
      const result = await sink.deliver([], { ...context, sending: async () => {}, answered: () => {} })
      assert.ok(!isParked(result), 'there is nothing to wait for')
      assert.equal(result?.length ?? 0, 0)
      assertAll(await call(sink, good(options, 1), options), 'delivered')
    },
  },
  {
    name: 'delivering the same events again succeeds',
    async run(sink, options) {
      const events = good(options, Math.min(3, batchOf(sink)))
      assertAll(await call(sink, events, options), 'delivered')
      assertAll(await call(sink, events, options), 'delivered', 'superseded')
    },
  },
  {
    name: 'a bad event alone is rejected',
    needs: 'bad',
    async run(sink, options) {
      assertAll(await call(sink, [special(options, 'bad')], options), 'rejected')
    },
  },
  {
    name: 'a bad event in a batch fails alone',
    needs: 'bad',
    run: (sink, options) => oneFails(sink, options, 'bad'),
  },
  {
    name: 'a sink that keeps order applies nothing behind a failure of its aggregate',
    needs: 'bad',
    async run(sink, options) {
      if (!capabilitiesOf(sink).keepsOrder) return
      const bad = special(options, 'bad')
      const aggregate = [bad.aggregateType, bad.aggregateId] as const
      const behind = sampleEvent({ ...options.event?.(index++), aggregate })
      const outcomes = names(await call(sink, [bad, behind], options))
      // The newer state took its place: nothing failed, so nothing is behind a failure. A parked call
      // has one word for all its events.
      if (outcomes[0] === 'superseded') return
      if (sink.poll !== undefined && outcomes[0] === 'delivered') return
      assert.ok(!['delivered', 'superseded'].includes(String(outcomes[1])), outcomes.join(', '))
    },
  },
  {
    name: 'an event that is too large is rejected, the others pass',
    needs: 'oversize',
    run: (sink, options) => oneFails(sink, options, 'oversize'),
  },
  {
    name: 'a destination that is down is unavailable, and nothing is lost',
    needs: 'down',
    run: (sink, options) => failsThenRecovers(sink, options, 'down', (outcomes) => assertAll(outcomes, 'unavailable')),
  },
  {
    name: 'wrong credentials are misconfigured, and nothing is lost',
    needs: 'credentials',
    run: (sink, options) =>
      failsThenRecovers(sink, options, 'credentials', (outcomes) => assertAll(outcomes, 'misconfigured')),
  },
  {
    name: 'a destination that asks for a pause is unavailable until then',
    needs: 'throttle',
    run: (sink, options) =>
      failsThenRecovers(sink, options, 'throttle', (outcomes) => {
        assertAll(outcomes, 'unavailable')
        assert.ok(
          outcomes.some(({ afterMs }) => (afterMs ?? 0) > 0),
          'afterMs says for how long',
        )
      }),
  },
  {
    name: 'a call told to stop ends promptly',
    needs: 'hang',
    run: (sink, options) => whileBroken(options.hang, () => stopsPromptly(sink, options)),
  },
  {
    name: 'probe() passes while healthy and throws while down',
    needs: 'down',
    async run(sink, options) {
      if (sink.probe === undefined) return
      const context = { signal: AbortSignal.timeout(10_000), subscription: 'exercise' }
      await sink.probe(context)
      await whileBroken(options.down, () => assert.rejects(async () => sink.probe?.(context)))
    },
  },
  { name: 'parked calls are told together, and by any process', run: tellsParked },
  {
    name: 'a poll that cannot reach the destination tells nothing, and a later one does',
    needs: 'down',
    run: pollsAgain,
  },
  { name: 'a ledger sink records sending before the effect', run: recordsSending },
  { name: 'a ledger sink sends nothing it may not record', run: obeysRefusal },
  {
    name: 'close() twice is harmless',
    async run(sink, options) {
      assertAll(await call(sink, good(options, 1), options), 'delivered')
      await sink.close?.()
      await sink.close?.()
    },
  },
]

async function oneFails(sink: Sink, options: ExerciseSinkOptions, hook: 'bad' | 'oversize'): Promise<void> {
  const others = good(options, Math.max(0, Math.min(4, batchOf(sink) - 1)))
  const events = [...others.slice(0, 2), special(options, hook), ...others.slice(2)]
  const outcomes = names(await callInHalves(sink, events, options))
  const failed = events.map((_, at) => (at === Math.min(2, others.length) ? 'rejected' : 'ok'))
  const seen = outcomes.map((name) => (name === 'delivered' || name === 'superseded' ? 'ok' : name))
  assert.deepEqual(seen, failed)
  await assertAccepted(options, others)
}

async function stopsPromptly(sink: Sink, options: ExerciseSinkOptions): Promise<void> {
  const stop = new AbortController()
  const running = call(sink, good(options, 1), { ...options, signal: stop.signal })
  running.catch(() => {})
  await pause(50)
  stop.abort()
  const ended = running.then(() => true)
  const inTime = await Promise.race([ended, pause(promptMs, false, { ref: false })])
  assert.ok(inTime, `deliver() had not ended ${promptMs} ms after its signal was aborted`)
}

/** Calls sent one after the other, as far as they are parked; the others have ended already. */
async function parkedCalls(
  sink: Sink,
  options: ExerciseSinkOptions,
  count: number,
): Promise<{ handles: string[]; events: OutboxEvent[] }> {
  const handles: string[] = []
  const sent: OutboxEvent[] = []
  const { signal } = new AbortController()
  const context = { signal, subscription: 'exercise', deadlineMs: 30_000 }
  for (let call = 0; call < count; call++) {
    const events = good(options, 1)
    const result = await sink.deliver(events, { ...context, sending: async () => {}, answered: () => {} })
    if (!isParked(result)) continue
    assertHandle(sink, result.parked)
    handles.push(result.parked)
    sent.push(...events)
  }
  return { handles, events: sent }
}

async function allEnded(sink: Sink, handles: readonly string[]): Promise<readonly Outcome[]> {
  for (let asked = 0; ; asked++) {
    // A poll that fails is asked again, as the engine does; not for ever here.
    const polled = await pollOnce(sink, handles).catch((error) => {
      if (asked > pollsMax) throw error
      return refuseAssertion(error)
    })
    if (polled !== undefined && !polled.includes(undefined)) return polled as readonly Outcome[]
    await pause(20)
  }
}

async function tellsParked(sink: Sink, options: ExerciseSinkOptions): Promise<void> {
  if (sink.poll === undefined) return
  assert.deepEqual(await pollOnce(sink, []), [], 'no handles, no answers')
  const { handles, events } = await parkedCalls(sink, options, 3)
  assert.equal(new Set(handles).size, handles.length, 'every call has a handle of its own')
  assertAll(await allEnded(sink, handles), 'delivered', 'superseded')
  await assertAccepted(options, events)
  // Asked again, and in another order: whoever takes a lane over may have asked before.
  assertAll(await allEnded(sink, [...handles].reverse()), 'delivered', 'superseded')
}

async function pollsAgain(sink: Sink, options: ExerciseSinkOptions): Promise<void> {
  if (sink.poll === undefined) return
  const { handles, events } = await parkedCalls(sink, options, 2)
  if (handles.length === 0) return
  await whileBroken(options.down, async () => {
    // Thrown, or still at work: an outcome would settle what nobody knows.
    const polled = await pollOnce(sink, handles).catch(refuseAssertion)
    assert.deepEqual(polled ?? [], polled?.map(() => undefined) ?? [], 'nothing is known')
  })
  assertAll(await allEnded(sink, handles), 'delivered', 'superseded')
  await assertAccepted(options, events)
}

function refuseAssertion(error: unknown): undefined {
  if (error instanceof assert.AssertionError) throw error
}

async function recordsSending(sink: Sink, options: ExerciseSinkOptions): Promise<void> {
  if (!capabilitiesOf(sink).ledger) return
  const begun = new Set<OutboxEvent>()
  const sending: NonNullable<CallOptions['sending']> = async (event) => {
    await assertAccepted(options, [event], false)
    begun.add(event)
  }
  const events = good(options, Math.min(3, batchOf(sink)))
  assertAll(await call(sink, events, { ...options, sending }), 'delivered')
  assert.deepEqual([...begun], events, 'sending() was called for every event, in order')
}

async function obeysRefusal(sink: Sink, options: ExerciseSinkOptions): Promise<void> {
  if (!capabilitiesOf(sink).ledger) return
  const sending = async () => {
    throw new Error('the lease is lost')
  }
  const events = good(options, 1)
  await call(sink, events, { ...options, sending })
  await assertAccepted(options, events, false)
}
