/**
 * What a claim loop does next. One pure function over everything the decision depends on; the loop
 * carries the action out and asks again (loop.ts).
 */

/** The loop and its subscription, seen at one moment. */
export interface View {
  readonly stopping: boolean
  /** An answer was lost or a settle was refused: where the lanes stand has to be asked. */
  readonly doubt: boolean
  /** The call of a parked round has ended. */
  readonly returned: boolean
  readonly mode: 'live' | 'dry-run' | 'paused'
  /** The database has a newer revision of the subscription than this worker. */
  readonly outdated: boolean
  /** Lanes held, and those of them that may be given back: no destination works on a task of theirs. */
  readonly lanes: number
  readonly free: number
  /** Lanes that may be read now: no task and no slice of a replay is out. */
  readonly readable: number
  /** When to take or give back lanes; infinite: this loop has its share. */
  readonly balanceAtMs: number
  /** A batch was read ahead. */
  readonly ahead: boolean
  /** The breaker is open; the next probe may go at `probeAtMs`, if there is anything to try with. */
  readonly breaker: { readonly probeAtMs: number; readonly canProbe: boolean } | undefined
  /** The next time to look for events, if nobody calls before. */
  readonly lookAtMs: number
  /** Somebody has called since the last look. */
  readonly called: boolean
  /** A slice of a replay may go at this time; infinite: none is left, or one is out. */
  readonly replayAtMs: number
  /** The newest states of a lane have to be sent again at this time (again.ts). */
  readonly againAtMs: number
  /** The rate limit lets nothing go before this time. */
  readonly rateAtMs: number
  /** Nothing was found for so long that the lanes are given back. */
  readonly idle: boolean
  readonly pollMs: number
}

export type Action =
  /** Settles what is in flight and gives the lanes back. */
  | { readonly do: 'end' }
  /** Asks the database which lanes are held and where they stand. */
  | { readonly do: 'ask' }
  /** Settles parked rounds that are back. */
  | { readonly do: 'land' }
  /** Gives lanes back: all of them, or those without a task. */
  | { readonly do: 'release'; readonly all: boolean }
  /** Takes lanes up to the share of this loop, or gives back those beyond it. */
  | { readonly do: 'balance' }
  /** Forgets what was read ahead. */
  | { readonly do: 'forget' }
  /** Sends one event to a destination that was away. */
  | { readonly do: 'probe' }
  /** Starts a slice of a replay; it goes on beside what follows. */
  | { readonly do: 'replay' }
  /** Sends the newest states of a lane again. */
  | { readonly do: 'again' }
  /** Reads, delivers and settles one batch. */
  | { readonly do: 'round' }
  /** Ends for now: whoever looks on behalf of all idle loops calls again (lookout.ts). */
  | { readonly do: 'sleep' }
  /** Waits for a call, at most for so long. */
  | { readonly do: 'rest'; readonly ms: number }

export function decide(view: View, nowMs: number): Action {
  if (view.stopping) return { do: 'end' }
  if (view.doubt) return { do: 'ask' }
  if (view.returned) return { do: 'land' }
  if (view.outdated && view.lanes > 0) return { do: 'release', all: true }
  // What is under way when a subscription is paused ends and counts.
  if (view.mode === 'paused' && view.free > 0) return { do: 'release', all: false }
  if (view.mode === 'paused' || view.outdated) return canSleep(view) ? { do: 'sleep' } : { do: 'rest', ms: view.pollMs }
  if (view.ahead) return { do: view.breaker === undefined ? 'round' : 'forget' }
  if (view.balanceAtMs <= nowMs) return { do: 'balance' }
  if (canSleep(view)) return { do: 'sleep' }
  if (view.breaker !== undefined) return whileOpen(view, view.breaker, nowMs)
  if (view.replayAtMs <= nowMs) return { do: 'replay' }
  if (view.readable === 0) return rest(view, nowMs)
  if (view.againAtMs <= nowMs) return { do: 'again' }
  if ((view.called || view.lookAtMs <= nowMs) && view.rateAtMs <= nowMs) return { do: 'round' }
  return view.idle ? { do: 'release', all: false } : rest(view, nowMs)
}

/** Without lanes, and nothing was found for a while. */
function canSleep({ lanes, idle }: View): boolean {
  return lanes === 0 && idle
}

/** Lanes are kept while the destination is away: what was delivered beyond the cursor is known only here. */
function whileOpen(view: View, { probeAtMs, canProbe }: NonNullable<View['breaker']>, nowMs: number): Action {
  const can = canProbe && view.readable > 0
  if (can && probeAtMs <= nowMs) return { do: 'probe' }
  return until(Math.min(view.balanceAtMs, can ? probeAtMs : Number.POSITIVE_INFINITY), view, nowMs)
}

/** Until the first thing that is due by itself. */
function rest(view: View, nowMs: number): Action {
  const look = view.readable === 0 ? Number.POSITIVE_INFINITY : Math.max(view.lookAtMs, view.rateAtMs)
  const again = view.readable === 0 ? Number.POSITIVE_INFINITY : view.againAtMs
  return until(Math.min(look, view.balanceAtMs, view.replayAtMs, again), view, nowMs)
}

function until(dueAtMs: number, { pollMs }: View, nowMs: number): Action {
  return { do: 'rest', ms: Math.max(1, Math.min(pollMs, dueAtMs - nowMs)) }
}
