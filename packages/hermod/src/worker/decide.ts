/**
 * What a claim loop does next: one pure function of what the loop sees. The loop carries the action out and
 * asks again (loop.ts); how much is read, and when a call must end, is decided within the action.
 */

/** The loop and its subscription, seen at one moment. */
export interface View {
  readonly stopping: boolean
  /** An answer was lost or a settle was refused: the loop must ask the database where its lanes stand. */
  readonly doubt: boolean
  /** The call of a parked round has ended. */
  readonly returned: boolean
  readonly mode: 'live' | 'dry-run' | 'paused'
  /** The database has a newer revision of the subscription than this worker. */
  readonly outdated: boolean
  /** Lanes leased by this loop. `free`: those without a parked call or a slice of a replay under way. */
  readonly lanes: number
  readonly free: number
  /** When to claim lanes or give some back; infinite: this loop has its share. */
  readonly balanceAtMs: number
  /** A batch was read ahead. */
  readonly ahead: boolean
  /** Set while the breaker is open. The next probe may go at `probeAtMs`, if there is an event to probe with. */
  readonly breaker: { readonly probeAtMs: number; readonly canProbe: boolean } | undefined
  /** The next time to look for events, unless a wake-up comes before. */
  readonly lookAtMs: number
  /** A wake-up came since the last look. */
  readonly called: boolean
  /** A slice of a replay may start at this time; infinite: none is left, or one is under way. */
  readonly replayAtMs: number
  /** The newest states of a lane have to be sent again at this time (again.ts). */
  readonly againAtMs: number
  /** The rate limit allows nothing before this time. */
  readonly rateAtMs: number
  /** Nothing was found for a while: the lanes may be given back. */
  readonly idle: boolean
  readonly pollMs: number
}

export type Action =
  /** Settles what is in flight and gives the lanes back. */
  | { readonly do: 'end' }
  /** Asks the database which lanes are still leased, and where they stand. */
  | { readonly do: 'ask' }
  /** Settles parked rounds whose calls have ended. */
  | { readonly do: 'land' }
  /** Gives lanes back: all of them, or those without a parked call. */
  | { readonly do: 'release'; readonly lanes: 'all' | 'free' }
  /** Claims lanes up to the share of this loop, or gives back those beyond it. */
  | { readonly do: 'balance' }
  /** Drops what was read ahead. */
  | { readonly do: 'forget' }
  /** Sends one event to a destination that was unavailable. */
  | { readonly do: 'probe' }
  /** Starts a slice of a replay; the loop does not wait for it. */
  | { readonly do: 'replay' }
  /** Sends the newest states of a lane again. */
  | { readonly do: 'again' }
  /** Reads, delivers and settles one batch. */
  | { readonly do: 'round' }
  /** Ends for now: whoever looks on behalf of all idle loops calls again (lookout.ts). */
  | { readonly do: 'sleep' }
  /** Waits for a wake-up, at most `ms`. */
  | { readonly do: 'rest'; readonly ms: number }

/** The first rule that applies. */
export function decide(view: View, nowMs: number): Action {
  return interrupted(view) ?? standingDown(view) ?? readAhead(view) ?? arranging(view, nowMs) ?? working(view, nowMs)
}

function interrupted({ stopping, doubt, returned }: View): Action | undefined {
  if (stopping) return { do: 'end' }
  if (doubt) return { do: 'ask' }
  return returned ? { do: 'land' } : undefined
}

/** Paused or outdated: lanes go. Calls under way when a subscription is paused are finished and settled. */
function standingDown(view: View): Action | undefined {
  const { mode, outdated, lanes, free, pollMs } = view
  if (mode !== 'paused' && !outdated) return undefined
  if (outdated && lanes > 0) return { do: 'release', lanes: 'all' }
  if (free > 0) return { do: 'release', lanes: 'free' }
  return canSleep(view) ? { do: 'sleep' } : { do: 'rest', ms: pollMs }
}

/** What was read ahead is of no use while the breaker is open, or if the lanes were lost meanwhile. */
function readAhead({ ahead, breaker, free }: View): Action | undefined {
  if (!ahead) return undefined
  return { do: breaker === undefined && free > 0 ? 'round' : 'forget' }
}

/** Nothing comes before the next round, so its batch may be read while this one is being delivered. */
export function mayReadAhead(view: View, nowMs: number): boolean {
  const first = interrupted(view) ?? standingDown(view) ?? arranging(view, nowMs)
  return first === undefined && view.againAtMs > nowMs
}

/** Lanes, a breaker that is open, and a replay come before live events. */
function arranging(view: View, nowMs: number): Action | undefined {
  if (view.balanceAtMs <= nowMs) return { do: 'balance' }
  if (canSleep(view)) return { do: 'sleep' }
  if (view.breaker !== undefined) return whileOpen(view, view.breaker, nowMs)
  return view.replayAtMs <= nowMs ? { do: 'replay' } : undefined
}

function working(view: View, nowMs: number): Action {
  if (view.free === 0) return rest(view, nowMs)
  if (view.againAtMs <= nowMs) return { do: 'again' }
  if (lookAtMs(view) <= nowMs) return { do: 'round' }
  return view.idle ? { do: 'release', lanes: 'free' } : rest(view, nowMs)
}

/** When to look for events: as soon as somebody has called, but not faster than the rate limit allows. */
function lookAtMs({ called, lookAtMs: nextMs, rateAtMs }: View): number {
  return called ? rateAtMs : Math.max(nextMs, rateAtMs)
}

/** Without lanes, and nothing was found for a while. */
function canSleep({ lanes, idle }: View): boolean {
  return lanes === 0 && idle
}

/** The loop keeps its lanes while the breaker is open: only it knows what was delivered beyond the cursor. */
function whileOpen(view: View, { probeAtMs, canProbe }: NonNullable<View['breaker']>, nowMs: number): Action {
  const can = canProbe && view.free > 0
  if (can && probeAtMs <= nowMs) return { do: 'probe' }
  return until(Math.min(view.balanceAtMs, can ? probeAtMs : Number.POSITIVE_INFINITY), view, nowMs)
}

/** Rests until the first time at which something is due. */
function rest(view: View, nowMs: number): Action {
  const dueMs = view.free === 0 ? Number.POSITIVE_INFINITY : Math.min(lookAtMs(view), view.againAtMs)
  return until(Math.min(dueMs, view.balanceAtMs, view.replayAtMs), view, nowMs)
}

function until(dueAtMs: number, { pollMs }: View, nowMs: number): Action {
  return { do: 'rest', ms: Math.max(1, Math.min(pollMs, dueAtMs - nowMs)) }
}
