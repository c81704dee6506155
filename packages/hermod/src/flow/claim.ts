/**
 * claim: lease free lanes that have work, and read the next events of the lanes held. Leases run by
 * the database's clock; an idle claim writes nothing.
 */
import { type Database, select, selectArrays } from '../database.ts'
import type { EventDefinitions } from '../define-events.ts'
import { DeliveredEvent, type DeliveredEventFields } from '../delivered-event.ts'
import type { EntryOutcome, Result } from './result.ts'

const CLAIM = `select lane::text, fence::text, pos::text, expired::text from outbox.claim($1, $2, $3, $4, $5)`

const READ = `select lane, pos, id, kind, mark, version, created_at, names, aggregate_id, key, headers, payload
  from outbox.read($1, $2, $3::smallint[], $4::bigint[], $5, $6, $7, $8)`

/** Rows of the log looked at per lane and read when the filter matches few of them. */
export const scanRows = 10_000

export interface ClaimedLane {
  readonly lane: number
  readonly fence: bigint
  readonly cursor: bigint
  /** The former owner did not give it back: its lease ran out. */
  readonly expired: boolean
}

export async function claim(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  owner: string,
  lanesMax: number,
  leaseMs: number,
): Promise<ClaimedLane[]> {
  const { name, revision } = subscription
  const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, leaseMs])
  return rows.map((row) => ({
    lane: Number(row.lane),
    fence: BigInt(row.fence as string),
    cursor: BigInt(row.pos as string),
    expired: row.expired === 'true',
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

/** Undefined: the subscription is paused, held or has a newer revision. */
export async function read(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  lanes: readonly { readonly lane: number; readonly after: bigint }[],
  limits: ReadLimits,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
  listens: (type: string, aggregateType: string) => boolean,
): Promise<LaneRead[] | undefined> {
  const rows = await selectArrays(db, READ, [
    subscription.name,
    subscription.revision,
    lanes.map(({ lane }) => lane),
    lanes.map(({ after }) => String(after)),
    limits.count,
    limits.bytes,
    scanRows,
    limits.probing,
  ])
  if (rows.length === 0) return undefined
  if (rows.some((row) => row[3] !== null && row[3] !== '0' && !kinds.has(row[3] as string))) {
    await learnKinds(db, kinds)
  }
  const found = new Map(lanes.map(({ lane, after }) => [String(lane), new Reading(lane, after)]))
  for (const row of rows) found.get(row[0] as string)?.add(row, kinds, definitions, listens)
  return [...found.values()].map((reading) => reading.end())
}

async function learnKinds(db: Database, kinds: Kinds): Promise<void> {
  for (const row of await select(db, 'select code::text, type, aggregate_type from outbox.kind')) {
    kinds.set(row.code as string, [row.type as string, row.aggregate_type as string])
  }
}

type Values = (string | null)[]

/** Collects the rows of one lane. */
class Reading {
  readonly #lane: number
  readonly #fresh: Entry[] = []
  readonly #due: Entry[] = []
  #last: string
  #closed: string | null = null

  constructor(lane: number, after: bigint) {
    this.#lane = lane
    this.#last = String(after)
  }

  add(
    row: Values,
    kinds: Kinds,
    definitions: EventDefinitions | undefined,
    listens: (type: string, aggregateType: string) => boolean,
  ): void {
    const [, pos, id, kind, mark, , , named] = row
    if (id === null) {
      this.#closed = pos ?? null
      return
    }
    const names = named == null ? (kinds.get(kind as string) ?? UNNAMED) : named.split(' ')
    const entry = entryOf(row, this.#lane, names as [string, string], definitions)
    if (mark?.startsWith('due')) {
      this.#due.push(entry)
      return
    }
    this.#last = pos as string
    // Kinds beyond the code's range carry their names; SQL has not filtered them.
    if (named === null || listens(names[0] as string, names[1] as string)) this.#fresh.push(entry)
  }

  end(): LaneRead {
    const last = BigInt(this.#last)
    const closed = this.#closed === null ? last : BigInt(this.#closed)
    const more = this.#closed === null && this.#fresh.length > 0
    // biome-ignore lint/complexity/useMathMinMax: these are bigints
    const through = closed > last ? closed : last
    return { lane: this.#lane, through, fresh: this.#fresh, due: this.#due, more }
  }
}

const UNNAMED = ['', ''] as const

function entryOf(
  row: Values,
  lane: number,
  names: readonly [string, string],
  definitions: EventDefinitions | undefined,
): Entry {
  const mark = row[4] ?? null
  const due = mark?.startsWith('due') ?? false
  const attempts = due ? Number(mark?.slice(4)) : 0
  const event = new DeliveredEvent(new RowFields(row, lane, names, attempts + 1, definitions))
  const gone = row[11] === null && mark !== 'held'
  return { event, lane, mark: (due ? 'due' : mark) as Entry['mark'], attempts, gone }
}

/** The columns of `read`, decoded when they are asked for: most sinks need few of them. */
class RowFields implements DeliveredEventFields {
  readonly #row: Values
  readonly lane: number
  readonly type: string
  readonly aggregateType: string
  readonly attempt: number
  readonly definitions: EventDefinitions | undefined
  #position: bigint | undefined

  constructor(
    row: Values,
    lane: number,
    [type, aggregateType]: readonly [string, string],
    attempt: number,
    definitions: EventDefinitions | undefined,
  ) {
    this.#row = row
    this.lane = lane
    this.type = type
    this.aggregateType = aggregateType
    this.attempt = attempt
    this.definitions = definitions
  }

  get position(): bigint {
    this.#position ??= BigInt(this.#row[1] as string)
    return this.#position
  }
  get id(): bigint {
    return BigInt(this.#row[2] as string)
  }
  get version(): number {
    return Number(this.#row[5] ?? 1)
  }
  get createdAt(): number {
    return Number(this.#row[6]) * 1000
  }
  get aggregateId(): string {
    return this.#row[8] ?? ''
  }
  get key(): string | null {
    return this.#row[9] ?? null
  }
  get headersText(): string | null {
    return this.#row[10] ?? null
  }
  get payloadText(): string {
    return this.#row[11] ?? 'null'
  }
}
