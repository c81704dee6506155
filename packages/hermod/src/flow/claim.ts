/**
 * claim: lease free lanes that have work, and read the next events of the lanes held. Leases run by
 * the database's clock; an idle claim writes nothing.
 */
import { type Database, type Param, select, selectArrays } from '../database.ts'
import type { EventDefinitions } from '../define-events.ts'
import { DeliveredEvent, type DeliveredEventFields } from '../delivered-event.ts'
import type { EntryOutcome, Result } from './result.ts'

const CLAIM = `select lane::text, fence::text, pos::text, expired::text, again_ms::text
  from outbox.claim($1, $2, $3, $4, $5, $6)`

const READ = `select lane, due, through, heads, payloads, kind_max
  from outbox.read($1, $2, $3::smallint[], $4::bigint[], $5, $6, $7, $8, $9::boolean[])`

/** Rows of the log looked at per lane and read when the filter matches few of them. */
export const scanRows = 10_000

export interface ClaimedLane {
  readonly lane: number
  readonly fence: bigint
  readonly cursor: bigint
  /** The former owner did not give it back: its lease ran out. */
  readonly expired: boolean
  /** What a former owner may have sent late is sent again after this time. */
  readonly againMs: number | undefined
}

export interface ClaimOptions {
  readonly lanesMax: number
  readonly leaseMs: number
  /** How long a former owner's call may take to land last; null: it cannot do harm. */
  readonly callMs: number | null
}

export async function claim(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  owner: string,
  { lanesMax, leaseMs, callMs }: ClaimOptions,
): Promise<ClaimedLane[]> {
  const { name, revision } = subscription
  const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, leaseMs, callMs])
  return rows.map((row) => ({
    lane: Number(row.lane),
    fence: BigInt(row.fence as string),
    cursor: BigInt(row.pos as string),
    expired: row.expired === 'true',
    againMs: row.again_ms == null ? undefined : Number(row.again_ms),
  }))
}

/** One event of a lane, and what its aggregate's rows mean for it. */
export interface Entry {
  /** Replaced when the subscription loads the current row. */
  event: DeliveredEvent
  readonly lane: number
  /** held: its aggregate waits; dead: its aggregate has a dead letter; due: it has a row itself. */
  readonly mark: 'held' | 'dead' | 'due' | null
  /** Attempts already spent. */
  readonly attempts: number
  /** Its row is no longer there; retention never lets that happen. */
  readonly gone: boolean
  /** Where its outcome belongs to, and the outcome: see result.ts. */
  result?: Result
  outcome?: EntryOutcome
}

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
}

/** Names of the small codes in the log; they never change. */
export type Kinds = Map<string, readonly [type: string, aggregateType: string]>

/** What is read, and how its rows become events. */
export interface Reader {
  readonly subscription: { readonly name: string; readonly revision: number }
  readonly lanes: readonly {
    readonly lane: number
    readonly after: bigint
    readonly full: boolean
  }[]
  readonly limits: ReadLimits
  readonly kinds: Kinds
  readonly definitions: EventDefinitions | undefined
  listens(type: string, aggregateType: string): boolean
}

/** Undefined: the subscription is paused, held or has a newer revision. */
export async function read(db: Database, reader: Reader): Promise<LaneRead[] | undefined> {
  return readOf(db, await selectArrays(db, READ, readValues(reader)), reader)
}

export function readValues({ subscription, lanes, limits }: Reader): Param[] {
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
  ]
}

/** The rows of outbox.read, put together by lane. */
export async function readOf(
  db: Database,
  rows: readonly (string | null)[][],
  { lanes, kinds, definitions, listens }: Reader,
): Promise<LaneRead[] | undefined> {
  if (rows.length === 0) return undefined
  const newest = Math.max(...rows.map((row) => Number(row[5] ?? 0)))
  if (newest > kinds.size) await learnKinds(db, kinds)
  return lanes.map(({ lane, after }) => {
    const mine = rows.filter((row) => row[0] === String(lane))
    const entries = (row: (string | null)[] | undefined) => entriesOf(row, lane, kinds, definitions, listens)
    const fresh = mine.find((row) => row[1] === 'f')
    const due = mine.find((row) => row[1] === 't')
    return laneRead(lane, after, fresh?.[2], entries(fresh), entries(due).kept)
  })
}

/** Neither can stand in JSON, in an id or in a key. */
const RECORD = '\x1e'
const FIELD = '\x1f'

/** Codes are given in turn and never change: a higher one than we know is new. */
async function learnKinds(db: Database, kinds: Kinds): Promise<void> {
  for (const row of await select(db, 'select code::text, type, aggregate_type from outbox.kind where code > 0')) {
    kinds.set(row.code as string, [row.type as string, row.aggregate_type as string])
  }
}

/** The fields of an event beside its payload, split when one of them is asked for. */
class Head {
  readonly #text: string
  /** It says more than the common case: version, mark, names, key, headers. */
  readonly long: boolean
  #fields: string[] | undefined

  constructor(text: string) {
    this.#text = text
    this.long = text.charCodeAt(0) === 0x2b
  }

  field(at: number): string {
    this.#fields ??= (this.long ? this.#text.slice(1) : this.#text).split(FIELD)
    return this.#fields[at] ?? ''
  }
}

/** The columns of a head, in order. */
const POS = 0
const ID = 1
const KIND = 2
const CREATED = 3
const AGGREGATE_ID = 4
const VERSION = 5
const MARK = 6
const NAMES = 7
const KEY = 8
const HEADERS = 9

interface Entries {
  readonly kept: Entry[]
  /** The last one, kept or not. */
  readonly last: Entry | undefined
}

/** The events of one row that is packed as outbox.read packs it. */
export function unpack(
  row: (string | null)[],
  lane: number,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
  listens: (type: string, aggregateType: string) => boolean,
): Entry[] {
  return entriesOf(row, lane, kinds, definitions, listens).kept
}

function entriesOf(
  row: (string | null)[] | undefined,
  lane: number,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
  listens: (type: string, aggregateType: string) => boolean,
): Entries {
  if (row?.[3] == null) return { kept: [], last: undefined }
  const heads = row[3].split(RECORD)
  const payloads = (row[4] as string).split(RECORD)
  const kept: Entry[] = []
  let last: Entry | undefined
  for (let at = 0; at < heads.length; at++) {
    const head = new Head(heads[at] as string)
    last = entryOf(head, lane, payloads[at] as string, kinds, definitions)
    // Kinds beyond the code's range carry their names; SQL has not filtered them.
    const unlisted = head.long && last.mark !== 'due' && head.field(NAMES) !== ''
    if (!unlisted || listens(last.event.type, last.event.aggregateType)) kept.push(last)
  }
  return { kept, last }
}

function laneRead(
  lane: number,
  after: bigint,
  closed: string | null | undefined,
  { kept: fresh, last }: Entries,
  due: Entry[],
): LaneRead {
  const end = last?.event.position ?? after
  const scanned = closed == null ? end : BigInt(closed)
  const more = closed == null && fresh.length > 0
  // biome-ignore lint/complexity/useMathMinMax: these are bigints
  return { lane, through: scanned > end ? scanned : end, fresh, due, more }
}

const UNNAMED = ['', ''] as const

function entryOf(
  head: Head,
  lane: number,
  payload: string,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
): Entry {
  const mark = head.long ? head.field(MARK) : ''
  const due = mark.startsWith('due')
  const attempts = due ? Number(mark.slice(4)) : 0
  const fields = new HeadFields(head, lane, payload, kinds, attempts + 1, definitions)
  return {
    event: new DeliveredEvent(fields),
    lane,
    mark: (due ? 'due' : mark || null) as Entry['mark'],
    attempts,
    gone: payload === '' && mark !== 'held',
  }
}

/** Decoded when asked for: most sinks need few of them. */
class HeadFields implements DeliveredEventFields {
  readonly #head: Head
  readonly #kinds: Kinds
  readonly lane: number
  readonly payloadText: string
  readonly attempt: number
  readonly definitions: EventDefinitions | undefined
  #position: bigint | undefined

  constructor(
    head: Head,
    lane: number,
    payload: string,
    kinds: Kinds,
    attempt: number,
    definitions: EventDefinitions | undefined,
  ) {
    this.#head = head
    this.#kinds = kinds
    this.lane = lane
    this.payloadText = payload === '' ? 'null' : payload
    this.attempt = attempt
    this.definitions = definitions
  }

  /** Event type and aggregate type. */
  get #names(): readonly string[] {
    const named = this.#head.long ? this.#head.field(NAMES) : ''
    return named === '' ? (this.#kinds.get(this.#head.field(KIND)) ?? UNNAMED) : named.split(' ')
  }

  get type(): string {
    return this.#names[0] ?? ''
  }
  get aggregateType(): string {
    return this.#names[1] ?? ''
  }
  get position(): bigint {
    this.#position ??= BigInt(this.#head.field(POS))
    return this.#position
  }
  get id(): bigint {
    return BigInt(this.#head.field(ID))
  }
  get version(): number {
    return this.#head.long ? Number(this.#head.field(VERSION) || 1) : 1
  }
  get createdAt(): number {
    return Number(this.#head.field(CREATED))
  }
  get aggregateId(): string {
    return this.#head.field(AGGREGATE_ID)
  }
  get key(): string | null {
    return (this.#head.long && this.#head.field(KEY)) || null
  }
  get headersText(): string | null {
    return (this.#head.long && this.#head.field(HEADERS)) || null
  }
}
