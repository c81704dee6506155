/**
 * One call to a sink under its deadline. Whatever the sink does (throws, hangs, wakes up too late),
 * it ends in one outcome per event, or in none where nothing was tried.
 */
import { HermodError } from '../errors.ts'
import { isClean } from '../foreign-text.ts'
import type { ResolvedSubscription } from '../options.ts'
import {
  type DeliveryContext,
  handleMax,
  isParked,
  normaliseOutcomes,
  type Outcome,
  outcomeOfError,
  type Parked,
  retry,
  unavailable,
} from '../sinks/sink.ts'
import type { Entry } from './claim.ts'

/** A sink that does not end this long after its signal was aborted is broken. */
const overdueMs = 1_000

export interface CallOptions {
  /** Aborted when leases are lost or the worker stops; nothing is spent then. */
  readonly signal: AbortSignal
  /** Asked right before each call: how long it may take. Not above 0: nothing may be sent any more. */
  deadlineMs(): Promise<number>
  /** Is the entry's lane still ours? */
  mine(entry: Entry): boolean
  sending(entry: Entry, note: object | undefined): Promise<void>
  /** The destination took the call as a task: waits for its end. Undefined: nobody waits any more. */
  parked?(handle: string, entries: readonly Entry[]): Promise<Outcome | undefined>
  /** Told after each call to the sink. */
  called?(events: readonly Entry[], outcomes: readonly (Outcome | undefined)[], durationMs: number): void
}

/** One call under its deadline. Undefined outcomes: it was aborted, nothing is known or spent. */
export async function call(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<(Outcome | undefined)[]> {
  const started = performance.now()
  const outcomes = await attempt(subscription, entries, options)
  options.called?.(entries, outcomes, performance.now() - started)
  return outcomes
}

async function attempt(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<(Outcome | undefined)[]> {
  const deadlineMs = await options.deadlineMs()
  const lost = entries.some((entry) => !options.mine(entry))
  if (options.signal.aborted || deadlineMs <= 0 || lost) return entries.map(() => undefined)
  const { sink, ledger } = subscription
  const events = entries.map(({ event }) => event)
  const deadline = AbortSignal.timeout(Math.ceil(deadlineMs))
  const signal = AbortSignal.any([options.signal, deadline])
  const begun = new Set<Entry>()
  const context = contextOf(subscription, entries, options, { signal, deadlineMs, begun })
  try {
    const given = await settled(Promise.resolve(sink.deliver(events, context)), signal)
    if (isParked(given) && options.parked !== undefined && mayPark(subscription, given)) {
      const outcome = await options.parked(given.parked, entries)
      return entries.map(() => outcome && ofAll(outcome, entries.length))
    }
    if (given !== OVERDUE) return [...normaliseOutcomes(given, events, { ledger })]
    return entries.map((entry) => overdue(options.signal, ledger && begun.has(entry)))
  } catch (error) {
    return entries.map((entry) => {
      const doubt = ledger && begun.has(entry)
      if (options.signal.aborted && !doubt) return undefined
      if (deadline.aborted) return doubt ? doubtful(late(deadlineMs)) : late(deadlineMs)
      const outcome = outcomeOfError(error, { items: events.length, ledger: doubt })
      return doubt ? doubtful(outcome) : outcome
    })
  } finally {
    context.close()
  }
}

/** Without a way to ask, for a ledger, or when it cannot be stored as it is, a handle is no answer. */
function mayPark({ sink, ledger }: ResolvedSubscription, { parked }: Parked): boolean {
  return sink.poll !== undefined && !ledger && parked !== '' && parked.length <= handleMax && isClean(parked)
}

/** One word for many: nobody can tell which of them is bad, so they are halved until it shows. */
function ofAll(outcome: Outcome, count: number): Outcome {
  return outcome.outcome === 'rejected' && count > 1 ? { ...outcome, outcome: 'split' } : outcome
}

function contextOf(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  { signal, deadlineMs, begun }: { signal: AbortSignal; deadlineMs: number; begun: Set<Entry> },
): DeliveryContext & { close(): void } {
  const byEvent = new Map(subscription.ledger ? entries.map((entry) => [entry.event, entry]) : [])
  let closed = false
  return {
    signal,
    subscription: subscription.name,
    deadlineMs,
    sending: async (event, note) => {
      const entry = byEvent.get(event as Entry['event'])
      if (entry === undefined) return
      // A sink that wakes up after its call was given up must not send what is settled by now.
      if (closed || signal.aborted) throw new HermodError('HMD_LEASE_LOST', 'this call has ended')
      await options.sending(entry, note)
      begun.add(entry)
    },
    close: () => {
      closed = true
    },
  }
}

/** Thrown after `sending`: whether it arrived cannot be known, unless the error says so. */
function doubtful(outcome: Outcome): Outcome {
  const sure = outcome.outcome === 'unavailable' || outcome.outcome === 'misconfigured'
  return sure && outcome.code !== 'HMD_SINK_DEADLINE' ? outcome : { ...outcome, outcome: 'unknown' }
}

export const OVERDUE = Symbol('overdue')

/** Waits for the sink, but not for one that ignores its signal. */
export async function settled<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | typeof OVERDUE> {
  let timer: NodeJS.Timeout | undefined
  const abandoned = new Promise<typeof OVERDUE>((resolve) => {
    const wait = () => {
      timer = setTimeout(() => resolve(OVERDUE), overdueMs)
    }
    if (signal.aborted) wait()
    else signal.addEventListener('abort', wait, { once: true })
  })
  promise.catch(() => {})
  try {
    return await Promise.race([promise, abandoned])
  } finally {
    clearTimeout(timer)
  }
}

function overdue(stop: AbortSignal, begun: boolean): Outcome | undefined {
  const details = { code: 'HMD_SINK_BROKEN', message: 'the sink did not settle after its deadline' }
  if (begun) return { outcome: 'unknown', ...details }
  return stop.aborted ? undefined : retry(details)
}

function late(deadlineMs: number): Outcome {
  const message = `no answer within ${Math.round(deadlineMs)} ms`
  return unavailable({ code: 'HMD_SINK_DEADLINE', message })
}
