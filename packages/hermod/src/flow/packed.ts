/**
 * packed: events as `outbox.read` sends them, a row per lane with two lists separated by U+001E: what stands
 * beside the payloads, and the payloads. Thousands of rows of a dozen columns cost both sides more than the
 * events themselves; fields are decoded when somebody asks for them (docs/adr/packed-reads.md).
 */
import { DeliveredEvent, type DeliveredEventFields } from '../delivered-event.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import type { Names } from './kinds.ts'
import type { Entry } from './result.ts'

/** lane, due, through, heads, payloads, the highest kind. */
export type Packed = (string | null)[]

/** How codes and versions become names and payloads. */
export interface Naming {
  readonly names: Names
  readonly definitions: EventDefinitions | undefined
  listens(type: string, aggregateType: string): boolean
}

/** Neither can stand in JSON, in an id or in a key. */
const RECORD = '\x1e'
const FIELD = '\x1f'

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

export interface Unpacked {
  readonly kept: Entry[]
  /** The last one, kept or not. */
  readonly last: Entry | undefined
}

/** The events of one row. Those of a kind that SQL could not filter are kept only if the subscription listens. */
export function unpack(row: Packed | undefined, lane: number, naming: Naming): Unpacked {
  if (row?.[3] == null) return { kept: [], last: undefined }
  const heads = row[3].split(RECORD)
  const payloads = (row[4] as string).split(RECORD)
  const kept: Entry[] = []
  let last: Entry | undefined
  for (let at = 0; at < heads.length; at++) {
    const head = new Head(heads[at] as string)
    last = entryOf(head, lane, payloads[at] as string, naming)
    // Kinds beyond the code's range carry their names; SQL has not filtered them.
    const unlisted = head.long && last.mark !== 'due' && head.field(NAMES) !== ''
    if (!unlisted || naming.listens(last.event.type, last.event.aggregateType)) kept.push(last)
  }
  return { kept, last }
}

const UNNAMED = ['', ''] as const

function entryOf(head: Head, lane: number, payload: string, naming: Naming): Entry {
  const mark = head.long ? head.field(MARK) : ''
  const due = mark.startsWith('due')
  const attempts = due ? Number(mark.slice(4)) : 0
  const fields = new HeadFields(head, lane, payload, attempts + 1, naming)
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
  readonly #kinds: Names
  readonly lane: number
  readonly payloadText: string
  readonly attempt: number
  readonly definitions: EventDefinitions | undefined
  #position: bigint | undefined

  constructor(head: Head, lane: number, payload: string, attempt: number, { names, definitions }: Naming) {
    this.#head = head
    this.#kinds = names
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
