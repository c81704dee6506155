/**
 * packed: events as `outbox.read` sends them, a row per lane with two lists separated by U+001E: the fields
 * of the events beside their payloads, and the payloads. Thousands of rows of a dozen columns cost both
 * sides more than the events themselves; fields are decoded when somebody asks for them (docs/adr/packed-reads.md).
 */
import { DeliveredEvent, type DeliveredEventFields } from '../delivered-event.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import type { Names } from './kinds.ts'
import type { Entry } from './result.ts'

/** lane, due, through, fields, payloads, the highest kind. */
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
class Fields {
  readonly #text: string
  /** It says more than the common case: version, mark, names, key, headers. */
  readonly long: boolean
  #split: string[] | undefined

  constructor(text: string) {
    this.#text = text
    this.long = text.charCodeAt(0) === 0x2b
  }

  at(at: number): string {
    this.#split ??= (this.long ? this.#text.slice(1) : this.#text).split(FIELD)
    return this.#split[at] ?? ''
  }
}

/** The fields, in order. */
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
  const texts = row[3].split(RECORD)
  const payloads = (row[4] as string).split(RECORD)
  const kept: Entry[] = []
  let last: Entry | undefined
  for (let at = 0; at < texts.length; at++) {
    const fields = new Fields(texts[at] as string)
    last = entryOf(fields, lane, payloads[at] as string, naming)
    // Kinds beyond the code's range carry their names; SQL has not filtered them.
    const unlisted = fields.long && last.mark !== 'due' && fields.at(NAMES) !== ''
    if (!unlisted || naming.listens(last.event.type, last.event.aggregateType)) kept.push(last)
  }
  return { kept, last }
}

const UNNAMED = ['', ''] as const

function entryOf(fields: Fields, lane: number, payload: string, naming: Naming): Entry {
  const mark = fields.long ? fields.at(MARK) : ''
  const due = mark.startsWith('due')
  const attempts = due ? Number(mark.slice(4)) : 0
  return {
    event: new DeliveredEvent(new PackedFields(fields, lane, payload, attempts + 1, naming)),
    lane,
    mark: (due ? 'due' : mark || null) as Entry['mark'],
    attempts,
    gone: payload === '' && mark !== 'blocked',
  }
}

/** Decoded when asked for: most sinks need few of them. */
class PackedFields implements DeliveredEventFields {
  readonly #fields: Fields
  readonly #kinds: Names
  readonly lane: number
  readonly payloadText: string
  readonly attempt: number
  readonly definitions: EventDefinitions | undefined
  #position: bigint | undefined

  constructor(fields: Fields, lane: number, payload: string, attempt: number, { names, definitions }: Naming) {
    this.#fields = fields
    this.#kinds = names
    this.lane = lane
    this.payloadText = payload === '' ? 'null' : payload
    this.attempt = attempt
    this.definitions = definitions
  }

  /** Event type and aggregate type. */
  get #names(): readonly string[] {
    const named = this.#fields.long ? this.#fields.at(NAMES) : ''
    return named === '' ? (this.#kinds.get(this.#fields.at(KIND)) ?? UNNAMED) : named.split(' ')
  }

  get type(): string {
    return this.#names[0] ?? ''
  }
  get aggregateType(): string {
    return this.#names[1] ?? ''
  }
  get position(): bigint {
    this.#position ??= BigInt(this.#fields.at(POS))
    return this.#position
  }
  get id(): bigint {
    return BigInt(this.#fields.at(ID))
  }
  get version(): number {
    return this.#fields.long ? Number(this.#fields.at(VERSION) || 1) : 1
  }
  get createdAt(): number {
    return Number(this.#fields.at(CREATED))
  }
  get aggregateId(): string {
    return this.#fields.at(AGGREGATE_ID)
  }
  get key(): string | null {
    return (this.#fields.long && this.#fields.at(KEY)) || null
  }
  get headersText(): string | null {
    return (this.#fields.long && this.#fields.at(HEADERS)) || null
  }
}
