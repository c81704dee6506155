/** How the conformance suite calls a sink: as the engine does, with its rules for what comes back. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { DeliveredEvent } from '../delivered-event.ts'
import type { OutboxEvent } from '../event.ts'
import {
  capabilitiesOf,
  type DeliveryContext,
  delivered,
  handleMax,
  isParked,
  normaliseOutcomes,
  normalisePolled,
  type Outcome,
  outcomeOfError,
  type Parked,
  rejected,
  type Sink,
} from '../sinks/sink.ts'

/** The fields of an event that the suite needs; the rest is generated. */
export interface SampleEvent {
  readonly type?: string
  readonly aggregate?: readonly [type: string, id: string]
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** In every sample payload: it must appear in no message and no code. */
export const marker = 'hermod-sample-payload'

let position = 0n
/** Between two questions about a parked call. */
const pollEveryMs = 10

/** Positions ascend over the whole run, as they do in a log. */
export function sampleEvent(sample: SampleEvent = {}, absent = false): OutboxEvent {
  position++
  const id = position
  const [aggregateType, aggregateId] = sample.aggregate ?? ['sample', String(id)]
  const payload = absent ? null : (sample.payload ?? { id: aggregateId, note: marker })
  const headers = sample.headers ?? {}
  return new DeliveredEvent({
    id,
    position,
    lane: 0,
    type: sample.type ?? 'sample.changed',
    aggregateType,
    aggregateId,
    version: 1,
    key: null,
    headersText: JSON.stringify(headers),
    createdAt: Date.now(),
    payloadText: JSON.stringify(payload),
    attempt: 1,
    absent,
  })
}

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly secrets?: readonly string[] | undefined
  readonly sending?: DeliveryContext['sending']
}

/** One call: local checks first, thrown values mapped, outcomes one per event and in order. */
export async function call(
  sink: Sink,
  events: readonly OutboxEvent[],
  options: CallOptions = {},
): Promise<readonly Outcome[]> {
  const problems = events.map((event) => sink.validate?.(event))
  const going = events.filter((_, index) => problems[index] === undefined)
  const given = going.length === 0 ? [] : [...(await send(sink, going, options))]
  const outcomes = problems.map((message) =>
    message === undefined ? (given.shift() as Outcome) : rejected({ message }),
  )
  assertDiscreet(outcomes, options.secrets ?? [])
  return outcomes
}

async function send(
  sink: Sink,
  events: readonly OutboxEvent[],
  { signal = new AbortController().signal, sending = async () => {} }: CallOptions,
): Promise<readonly Outcome[]> {
  const { ledger } = capabilitiesOf(sink)
  const answers = new Map<OutboxEvent, Outcome>()
  const answered: DeliveryContext['answered'] = (event, outcome) => void answers.set(event, outcome)
  const context = { signal, subscription: 'exercise', deadlineMs: 30_000, sending, answered }
  try {
    const result = await sink.deliver(events, context)
    if (isParked(result)) return await ended(sink, result, events.length, signal)
    assertShape(result, events, ledger)
    const said = result ?? events.map((event) => answers.get(event) ?? delivered())
    return normaliseOutcomes(said, events, { ledger })
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    // What was answered before the call broke off stands.
    return events.map((event) => answers.get(event) ?? outcomeOfError(error, { items: events.length, ledger }))
  }
}

/** A parked call ends with one outcome for all its events, as in the engine. */
async function ended(sink: Sink, { parked }: Parked, count: number, signal: AbortSignal): Promise<readonly Outcome[]> {
  assertHandle(sink, parked)
  for (;;) {
    const [outcome] = await pollOnce(sink, [parked], signal)
    const many = outcome?.outcome === 'rejected' && count > 1
    const said = many ? { ...outcome, outcome: 'split' as const } : outcome
    if (said !== undefined) return Array.from({ length: count }, () => said)
    await pause(pollEveryMs, undefined, { signal })
  }
}

export function assertHandle(sink: Sink, handle: string): void {
  assert.ok(sink.poll !== undefined, 'a sink that parks has poll()')
  assert.ok(!capabilitiesOf(sink).ledger, 'a ledger sink never parks')
  const fits = handle.length >= 1 && handle.length <= handleMax
  assert.ok(fits, `a handle has 1 to ${handleMax} characters, not ${handle.length}`)
}

export async function pollOnce(
  sink: Sink,
  handles: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly (Outcome | undefined)[]> {
  const answers = await sink.poll?.(handles, { signal, subscription: 'exercise' })
  const polled = normalisePolled(answers, handles)
  for (const outcome of polled) assert.notEqual(outcome?.code, 'HMD_SINK_BROKEN', outcome?.message)
  return polled
}

/** The engine would poll again after a result of the wrong shape; the suite fails. */
function assertShape(result: unknown, events: readonly OutboxEvent[], ledger: boolean): void {
  if (result === undefined) return
  assert.ok(Array.isArray(result), 'deliver() returns a list of outcomes, or nothing')
  assert.equal(result.length, events.length, 'one outcome per event, in the order given')
  for (const outcome of normaliseOutcomes(result, events, { ledger })) {
    assert.notEqual(outcome.code, 'HMD_SINK_BROKEN', outcome.message)
  }
}

function assertDiscreet(outcomes: readonly Outcome[], secrets: readonly string[]): void {
  for (const outcome of outcomes) {
    const text = JSON.stringify(outcome)
    for (const secret of secrets) {
      assert.ok(!text.includes(secret), `a secret appears in an outcome (${outcome.outcome})`)
    }
    const told = `${outcome.message ?? ''} ${outcome.code ?? ''}`
    assert.ok(!told.includes(marker), 'a payload appears in the message or code of an outcome')
  }
}

/** Calls again in halves what the sink asks to split, as the engine does; a single is rejected. */
export async function callInHalves(
  sink: Sink,
  events: readonly OutboxEvent[],
  options: CallOptions = {},
): Promise<readonly Outcome[]> {
  const outcomes = await call(sink, events, options)
  const again = events.filter((_, index) => outcomes[index]?.outcome === 'split')
  if (again.length === 0) return outcomes
  if (events.length === 1) return [rejected({ message: 'cannot be split further' })]
  const middle = Math.ceil(again.length / 2)
  const left = await callInHalves(sink, again.slice(0, middle), options)
  const right = await callInHalves(sink, again.slice(middle), options)
  const late = [...left, ...right]
  return outcomes.map((outcome) => (outcome.outcome === 'split' ? (late.shift() as Outcome) : outcome))
}

export function names(outcomes: readonly Outcome[]): string[] {
  return outcomes.map(({ outcome }) => outcome)
}
