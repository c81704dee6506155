/** read: the next events of leased lanes, in order. Reads nothing beyond the head of the log. */
import { type Database, type Param, selectArrays } from '../database.ts'
import type { Kinds } from './kinds.ts'
import { type Naming, type Packed, type Unpacked, unpack } from './packed.ts'
import type { Entry } from './result.ts'

const READ = `select lane, due, through, fields, payloads, kind_max
  from outbox.read($1, $2, $3::smallint[], $4::bigint[], $5, $6, $7, $8, $9::boolean[], $10)`

/** Rows of the log that one read looks at per lane when the filter matches few of them. */
export const scanRows = 10_000

export interface LaneRead {
  readonly lane: number
  /** Everything up to here was looked at. */
  readonly through: bigint
  readonly fresh: Entry[]
  readonly due: Entry[]
  /** A limit was met: there is probably more. */
  readonly more: boolean
}

export interface ReadLimits {
  readonly count: number
  readonly bytes: number
  /** One worker may look although the destination is held. */
  readonly probing: boolean
  /** Read for a dry run, or not for one; undefined: in any mode. */
  readonly rehearsed?: boolean
}

/** What is read, and how its rows become events. */
export interface Reader extends Omit<Naming, 'names'> {
  readonly subscription: { readonly name: string; readonly revision: number }
  readonly lanes: readonly {
    readonly lane: number
    readonly after: bigint
    readonly full: boolean
  }[]
  readonly limits: ReadLimits
  readonly kinds: Kinds
}

/** Undefined: the subscription is paused, held or has a newer revision. */
export async function read(db: Database, reader: Reader): Promise<LaneRead[] | undefined> {
  return readOf(db, await selectArrays(db, READ, readValues(reader)), reader)
}

function readValues({ subscription, lanes, limits }: Reader): Param[] {
  return [
    subscription.name,
    subscription.revision,
    lanes.map(({ lane }) => lane),
    lanes.map(({ after }) => String(after)),
    limits.count,
    limits.bytes,
    scanRows,
    limits.probing,
    lanes.map(({ full }) => full),
    limits.rehearsed ?? null,
  ]
}

/** The rows of outbox.read, put together by lane. */
async function readOf(
  db: Database,
  rows: readonly Packed[],
  { lanes, kinds, definitions, listens }: Reader,
): Promise<LaneRead[] | undefined> {
  if (rows.length === 0) return undefined
  const newest = Math.max(...rows.map((row) => Number(row[5] ?? 0)))
  // The row without a lane says up to which head was read, and so in which epoch.
  const head = BigInt(rows.find((row) => row[0] === null)?.[2] ?? 0)
  const names = await kinds.namesFor(db, head, newest)
  return lanes.map(({ lane, after }) => {
    const mine = rows.filter((row) => row[0] === String(lane))
    const fresh = mine.find((row) => row[1] === 'f')
    const due = mine.find((row) => row[1] === 't')
    const naming = { names, definitions, listens }
    return laneRead(lane, after, fresh?.[2], unpack(fresh, lane, naming), unpack(due, lane, naming).kept)
  })
}

function laneRead(
  lane: number,
  after: bigint,
  closed: string | null | undefined,
  { kept: fresh, last }: Unpacked,
  due: Entry[],
): LaneRead {
  const end = last?.event.position ?? after
  // Null: a limit was hit, or there was no row for the lane because it has no news; then there are no events either.
  const scanned = closed == null ? end : BigInt(closed)
  const more = closed == null && fresh.length > 0
  // biome-ignore lint/complexity/useMathMinMax: these are bigints
  return { lane, through: scanned > end ? scanned : end, fresh, due, more }
}
