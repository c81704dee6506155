/**
 * One call to a sink under its deadline. Whatever the sink does (throws, hangs, answers too late), the call
 * ends in one outcome per event, or in none if nothing was tried.
 */
import { HermodError, type HermodErrorCode } from '../errors.ts'
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
import { Effects } from './effects.ts'
import type { Entry } from './result.ts'

/** A sink that has not ended this long after its signal was aborted is broken. */
const overdueMs = 1_000

export interface CallOptions {
  /** Aborted when leases are lost or the worker stops; then no attempt is spent. */
  readonly signal: AbortSignal
  /** Asked right before each call: how long it may take. 0 or less: nothing may be sent any more. */
  deadlineMs(): Promise<number>
  /** Is the entry's lane still ours? */
  mine(entry: Entry): boolean
  sending(entry: Entry, note: object | undefined): Promise<void>
  /** The call is parked: waits for its end. Undefined: the wait was given up. */
  parked?(handle: string, entries: readonly Entry[]): Promise<Outcome | undefined>
  /** Called when a sink does not end although its call has. */
  abandoned?(): void
  /** Called after each call to the sink. */
  called?(events: readonly Entry[], outcomes: readonly (Outcome | undefined)[], durationMs: number): void
}

/** One call under its deadline. Undefined outcomes: it was aborted, and no attempt is spent. */
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
  const effects = new Effects(ledger)
  const context = contextOf(subscription, entries, options, { signal, deadlineMs, effects })
  try {
    const given = await unlessOverdue(Promise.resolve(sink.deliver(events, context)), signal)
    if (isParked(given) && options.parked !== undefined && mayPark(subscription, given)) {
      const outcome = await options.parked(given.parked, entries)
      return entries.map(() => outcome && ofAll(outcome, entries.length))
    }
    if (given === OVERDUE) {
      options.abandoned?.()
      return entries.map((entry) => overdue(options.signal, entry, effects))
    }
    // Our own list: the sink may have changed the one it was given.
    const outcomes = normaliseOutcomes(given, entries, { ledger })
    if (effects.none) return [...outcomes]
    return entries.map((entry, at) => said(given, outcomes[at] as Outcome, entry, effects))
  } catch (error) {
    const thrown = { error, items: entries.length, stopped: options.signal.aborted }
    const lateMs = deadline.aborted ? deadlineMs : undefined
    return entries.map((entry) => effects.answer(entry) ?? brokenOff({ ...thrown, lateMs }, entry, effects))
  } finally {
    context.close()
  }
}

/** A handle is no answer if the sink cannot be polled, for a ledger, or if it cannot be stored as it is. */
function mayPark({ sink, ledger }: ResolvedSubscription, { parked }: Parked): boolean {
  return sink.poll !== undefined && !ledger && parked !== '' && parked.length <= handleMax && isClean(parked)
}

/** One outcome for many events does not say which is bad, so they are halved until it shows. */
function ofAll(outcome: Outcome, count: number): Outcome {
  return outcome.outcome === 'rejected' && count > 1 ? { ...outcome, outcome: 'split' } : outcome
}

function contextOf(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  { signal, deadlineMs, effects }: { signal: AbortSignal; deadlineMs: number; effects: Effects },
): DeliveryContext & { close(): void } {
  let known: Map<unknown, Entry> | undefined
  const entryOf = (event: unknown) => {
    known ??= new Map(entries.map((entry) => [entry.event, entry]))
    return known.get(event)
  }
  let closed = false
  return {
    signal,
    subscription: subscription.name,
    deadlineMs,
    sending: async (event, note) => {
      const entry = subscription.ledger ? entryOf(event) : undefined
      if (entry === undefined) return
      // A sink that continues after its call was given up must not send what may be settled by now.
      if (closed || signal.aborted) throw new HermodError('HMD_LEASE_LOST', 'this call has ended')
      await effects.begin(entry, () => options.sending(entry, note))
    },
    answered: (event, outcome) => {
      const entry = entryOf(event)
      if (entry !== undefined && !closed) effects.answered(entry, outcome)
    },
    close: () => {
      closed = true
    },
  }
}

/** The sink ended its call. For an effect that was begun, a senseless answer counts as no answer. */
function said(given: unknown, outcome: Outcome, entry: Entry, effects: Effects): Outcome {
  const before = effects.answer(entry)
  const senseless = outcome.code === ('HMD_SINK_BROKEN' satisfies HermodErrorCode)
  if (before !== undefined && (given === undefined || senseless)) return before
  if (!effects.inDoubt(entry)) return outcome
  if (senseless) return { ...outcome, outcome: 'unknown' }
  // It was recorded as `sending`: trying it again is a new attempt, not another half of this call.
  return outcome.outcome === 'split' ? { ...outcome, outcome: 'retry' } : outcome
}

interface Break {
  readonly error: unknown
  readonly items: number
  /** Leases are lost, or the worker stops. */
  readonly stopped: boolean
  /** The deadline that has passed. */
  readonly lateMs: number | undefined
}

/** The call threw. Nobody knows whether an effect that was begun arrived, unless its own error says so. */
function brokenOff({ error, items, stopped, lateMs }: Break, entry: Entry, effects: Effects): Outcome | undefined {
  const doubt = effects.inDoubt(entry)
  if ((stopped || isWithdrawn(error)) && !doubt) return undefined
  const outcome = lateMs === undefined ? outcomeOfError(error, { items, ledger: doubt }) : late(lateMs)
  const sure = lateMs === undefined && effects.threw(entry) && isAway(outcome)
  return doubt && !sure ? { ...outcome, outcome: 'unknown' } : outcome
}

/** The others of the call were not begun: they are sent by the next one. */
function isWithdrawn(error: unknown): boolean {
  return error instanceof HermodError && error.code === 'HMD_EVENT_WITHDRAWN'
}

function isAway({ outcome, code }: Outcome): boolean {
  return (outcome === 'unavailable' || outcome === 'misconfigured') && code !== 'HMD_SINK_DEADLINE'
}

export const OVERDUE = Symbol('overdue')

/** Waits for the promise; OVERDUE if it does not end soon after its signal was aborted. */
export async function unlessOverdue<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | typeof OVERDUE> {
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

function overdue(stop: AbortSignal, entry: Entry, effects: Effects): Outcome | undefined {
  const answer = effects.answer(entry)
  if (answer !== undefined) return answer
  const details = { code: 'HMD_SINK_BROKEN', message: 'the sink did not settle after its deadline' }
  if (effects.inDoubt(entry)) return { outcome: 'unknown', ...details }
  return stop.aborted ? undefined : retry(details)
}

function late(deadlineMs: number): Outcome {
  const message = `no answer within ${Math.round(deadlineMs)} ms`
  return unavailable({ code: 'HMD_SINK_DEADLINE', message })
}
