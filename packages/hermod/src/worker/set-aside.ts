/**
 * Handles a settle that the database refuses. It is tried again after a pause, then lane by lane. In a lane that is still
 * refused, the rows that cause it lose their texts. So no answer of a destination can stop a loop.
 */
import { type Database, isConnectionError, isLockTimeout, transaction } from '../database.ts'
import type { HermodErrorCode } from '../errors.ts'
import type { Settlement } from '../flow/settle.ts'
import { clip } from '../foreign-text.ts'
import { fingerprint } from '../sinks/fingerprint.ts'
import { rejected } from '../sinks/outcome.ts'
import { notify } from '../telemetry.ts'
import type { Station } from './station.ts'

/** Pauses before each new try of the whole settle; then it goes lane by lane. */
const pausesMs = [100, 400, 1_600]

/** Writes these lanes; returns those that were settled. */
export type WriteLanes = (db: Database, lanes: readonly Settlement[]) => Promise<ReadonlySet<number>>

export interface Apart {
  /** The lanes that were settled. */
  readonly settled: ReadonlySet<number>
  /** Lanes that the database refuses in every form, and why. */
  readonly refused: ReadonlyMap<number, unknown>
}

/** Throws only if the connection fails: then nothing is known. */
export async function settleApart(
  station: Station,
  lanes: readonly Settlement[],
  cause: unknown,
  write: WriteLanes,
): Promise<Apart> {
  const { db, abort } = station
  let error = cause
  for (const ms of pausesMs) {
    // Other lanes do not wait for one whose row somebody holds.
    if (isLockTimeout(error)) break
    await pause(ms, abort)
    try {
      return { settled: await write(db, lanes), refused: new Map() }
    } catch (again) {
      if (isConnectionError(again)) throw again
      error = again
    }
    // The values are the reason: waiting does not help.
    if (isRefusal(error)) break
  }
  const settled = new Set<number>()
  const refused = new Map<number, unknown>()
  for (const lane of lanes) {
    const why = await settleLane(station, lane, write, settled)
    if (why !== undefined) refused.set(lane.lane, why)
  }
  return { settled, refused }
}

/** The same for one lane whose settle failed; throws the reason if it cannot be settled. */
export async function settleRefused(
  station: Station,
  lane: Settlement,
  error: unknown,
  write: WriteLanes,
): Promise<ReadonlySet<number>> {
  if (isConnectionError(error)) throw error
  const { settled, refused } = await settleApart(station, [lane], error, write)
  for (const why of refused.values()) throw why
  return settled
}

/** Undefined, or the reason why the lane cannot be settled. */
async function settleLane(
  station: Station,
  lane: Settlement,
  write: WriteLanes,
  settled: Set<number>,
): Promise<unknown> {
  const add = async (one: Settlement) => {
    for (const number of await write(station.db, [one])) settled.add(number)
  }
  try {
    await add(lane)
    return undefined
  } catch (error) {
    if (isConnectionError(error)) throw error
    if (!isRefusal(error) || lane.rows.length === 0) return error
    const aside = await offenders(station, lane, write, lane.rows)
    const why = await add(without(station, lane, aside)).catch((again) => again ?? error)
    if (isConnectionError(why)) throw why
    if (why === undefined) tell(station, lane, aside, error)
    return why
  }
}

/** Finds the rows that are refused, by halving, in transactions that are rolled back. */
async function offenders(
  station: Station,
  lane: Settlement,
  write: WriteLanes,
  suspects: readonly object[],
): Promise<ReadonlySet<object>> {
  const others = new Set(lane.rows.filter((row) => !suspects.includes(row)))
  if (await accepted(station.db, without(station, lane, others), write)) return new Set()
  if (suspects.length === 1) return new Set(suspects)
  const middle = Math.ceil(suspects.length / 2)
  const left = await offenders(station, lane, write, suspects.slice(0, middle))
  return new Set([...left, ...(await offenders(station, lane, write, suspects.slice(middle)))])
}

class RolledBack extends Error {}

async function accepted(db: Database, lane: Settlement, write: WriteLanes): Promise<boolean> {
  try {
    await transaction(db, async (client) => {
      await write(client as unknown as Database, [lane])
      throw new RolledBack()
    })
  } catch (error) {
    if (isConnectionError(error)) throw error
    return error instanceof RolledBack
  }
  return true
}

/** Replaces the texts of the destination by our own. State and attempts stay. */
function without({ subscription: { sink } }: Station, lane: Settlement, aside: ReadonlySet<object>): Settlement {
  if (aside.size === 0) return lane
  const code = 'HMD_SETTLE_REFUSED' satisfies HermodErrorCode
  const error = 'what the destination answered could not be stored'
  const clear = { code, error, fingerprint: fingerprint(sink.name, rejected({ code })), receipt: null }
  const rows = lane.rows.map((row) => (aside.has(row) ? { ...row, ...clear } : row))
  return { ...lane, rows }
}

function tell({ listener, subscription }: Station, lane: Settlement, aside: ReadonlySet<object>, error: unknown): void {
  const positions = [...aside].map((row) => (row as { pos: string }).pos)
  const cause = clip(error instanceof Error ? error.message : error, 500)
  notify(listener, 'warning', {
    code: 'HMD_SETTLE_REFUSED',
    message: `the database refused what ${subscription.sink.name} answered at ${positions.join(', ')}: ${cause}`,
    subscription: subscription.name,
    details: { lane: lane.lane, positions, cause },
  })
}

/** The database does not accept the values, or the error is our own; not a lack of space, time or rights. */
function isRefusal(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code) || /^(2[0-3]|42|54|P0|XX)/.test(code)
}

/** Ends early when the grace period of a stop is over. */
export async function pause(ms: number, abort: AbortSignal): Promise<void> {
  if (abort.aborted) return
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      abort.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    abort.addEventListener('abort', end)
  })
}
