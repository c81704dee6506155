/**
 * replay: sends again what lies between a lane's replay cursor and its live cursor. Found window by window,
 * read slice by slice, settled under the lane's fence.
 */
import { type Database, select, selectArrays } from '../database.ts'
import type { ResolvedSubscription } from '../options.ts'
import type { Kinds } from './kinds.ts'
import type { Leased } from './lease.ts'
import { type Naming, unpack } from './packed.ts'
import type { Entry } from './result.ts'
import { type Call, type Settlement, text, wholeMs } from './settle.ts'

const WHERE = `select pos::text, stop::text, met::text from outbox.replay where subscription = $1 and journey = $2::bigint and lane = $3`
const WINDOW = `select through::text, matching::text, positions::text, ids::text, hashes::text
  from outbox.replay_window($1, $2::smallint, $3::jsonb, $4::bigint, $5::bigint, $6)`
const READ = `select lane, due, through, heads, payloads, kind_max
  from outbox.replay_read($1, $2, $3, $4::smallint, $5::bigint, $6::bigint[], $7::bigint[], $8::integer[], $9::bigint, $10)`
const SETTLE = `select outbox.settle_replay($1, $2, $3, $4::bigint, $5::json)::text as met`
const ENLIST = `select outbox.enlist_again($1, $2, $3, $4::bigint, $5::smallint, $6::bigint, $7::bigint, $8::bigint,
  $9::bigint[], $10::bigint[], $11::integer[], $12)::text as met`

/** The part of the log that a replay is about. Positions are text: JSON has no 64-bit numbers. */
export interface ReplayPlan {
  /** The first position, and the last one if it is bounded. */
  readonly from: string
  readonly to?: string | undefined
  readonly types?: readonly string[] | undefined
  readonly aggregates?: readonly string[] | undefined
  /** One document. */
  readonly aggregate?: readonly [type: string, id: string] | undefined
  readonly ratePerSecond?: number | undefined
}

/** Events to send again, found by looking at the log up to `through` while the lane stood at `sieved`. */
export interface Window {
  readonly through: bigint
  readonly sieved: bigint
  /** What the filter matches, newest or not. */
  readonly matching: number
  readonly positions: readonly string[]
  readonly ids: readonly string[]
  readonly hashes: readonly string[]
}

/** Where the replay of a lane stands; undefined: it has reached the live cursor, or there is none. */
export async function replayCursor(
  db: Database,
  subscription: string,
  journey: bigint,
  lane: number,
): Promise<{ at: bigint; stop: bigint | undefined } | undefined> {
  const [row] = await select(db, WHERE, [subscription, String(journey), lane])
  if (row === undefined || row.met === 'true') return undefined
  const stop = row.stop == null ? undefined : BigInt(row.stop)
  return { at: BigInt(row.pos as string), stop }
}

export async function replayWindow(
  db: Database,
  subscription: string,
  lane: number,
  plan: object,
  range: { readonly after: bigint; readonly upTo: bigint; readonly rowsMax: number },
): Promise<Window> {
  const [row] = await select(db, WINDOW, [
    ...[subscription, lane, JSON.stringify(plan)],
    ...[String(range.after), String(range.upTo), range.rowsMax],
  ])
  return {
    through: BigInt(row?.through as string),
    sieved: range.upTo,
    matching: Number(row?.matching),
    positions: items(row?.positions),
    ids: items(row?.ids),
    hashes: items(row?.hashes),
  }
}

/** The array literal of plain numbers. */
export function items(literal: string | null | undefined): string[] {
  return literal?.match(/-?\d+/g) ?? []
}

export interface ReplayLane extends Leased {
  readonly sieved: bigint
  readonly bytes: number
}

export interface Reader extends Omit<Naming, 'names'> {
  readonly subscription: ResolvedSubscription
  readonly owner: string
  readonly kinds: Kinds
}

export interface Slice {
  readonly entries: Entry[]
  /** The read hit a limit here; undefined: all of it was read. */
  readonly through: bigint | undefined
}

/** Undefined: the lane is no longer leased, or the subscription does not send now. */
export async function readSlice(
  db: Database,
  { subscription: { name, revision }, owner, kinds, definitions, listens }: Reader,
  lane: ReplayLane,
  { positions, ids, hashes }: Pick<Window, 'positions' | 'ids' | 'hashes'>,
): Promise<Slice | undefined> {
  const [row] = await selectArrays(db, READ, [
    ...[name, revision, owner, lane.lane, String(lane.fence)],
    ...[positions, ids, hashes, String(lane.sieved), lane.bytes],
  ])
  if (row === undefined) return undefined
  const { kept: entries } = unpack(row, lane.lane, { names: kinds.names, definitions, listens })
  return { entries, through: row[2] == null ? undefined : BigInt(row[2]) }
}

/** Undefined: refused, another worker has the lane. Else: whether the live cursor was reached. */
export async function settleReplay(
  db: Database,
  { name, revision }: ResolvedSubscription,
  owner: string,
  journey: bigint,
  lane: Settlement,
  call: Call,
): Promise<boolean | undefined> {
  const batch = {
    lane: { ...lane, ...text(lane), beyond: undefined },
    call: {
      ago_ms: wholeMs(call.startedAgoMs),
      duration_ms: wholeMs(call.durationMs),
      worker: call.worker,
      outcome: lane.failed > 0 ? 'failed' : 'delivered',
    },
  }
  const values = [name, revision, owner, String(journey), JSON.stringify(batch)]
  return metOf(await select(db, SETTLE, values))
}

/** The same for a ledger, whose rows become pending again. */
export async function enlistAgain(
  db: Database,
  subscription: ResolvedSubscription,
  owner: string,
  journey: bigint,
  lane: Leased & { readonly from: bigint; readonly to: bigint },
  { positions, ids, hashes }: Pick<Window, 'positions' | 'ids' | 'hashes'>,
): Promise<boolean | undefined> {
  const { name, revision, retry } = subscription
  return metOf(
    await select(db, ENLIST, [
      ...[name, revision, owner, String(journey), lane.lane, String(lane.fence)],
      ...[String(lane.from), String(lane.to), positions, ids, hashes, retry.attemptsMax],
    ]),
  )
}

function metOf([row]: { met?: string | null }[]): boolean | undefined {
  return row?.met == null ? undefined : row.met === 'true'
}
