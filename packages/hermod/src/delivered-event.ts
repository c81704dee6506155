/**
 * An event on its way to a sink. Payload, headers and time are parsed when first read: a sink that passes
 * the raw JSON on never pays for parsing it.
 */

import type { EventDefinitions } from './event-definitions.ts'
import type { OutboxEvent } from './outbox-event.ts'

/** A row as `claim` reads it. */
export interface DeliveredEventFields {
  readonly id: bigint
  readonly position: bigint
  readonly lane: number
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly version: number
  readonly key?: string | null
  /** JSON text of a flat object, or null. */
  readonly headersText: string | null
  readonly createdAt: Date | string | number
  readonly bytes?: number | undefined
  readonly payloadText: string
  readonly attempt: number
  readonly absent?: boolean
  /** Declared types: payloads are brought to the declared version when read. */
  readonly definitions?: EventDefinitions | undefined
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

/** Whoever wrote them: an object, and nothing in it but strings. */
function headersOf(text: string): Readonly<Record<string, string>> {
  const entries = Object.entries(Object(JSON.parse(text))).filter(([, value]) => typeof value === 'string')
  return Object.freeze(Object.fromEntries(entries) as Record<string, string>)
}

export class DeliveredEvent<P = unknown> implements OutboxEvent<P> {
  readonly #fields: DeliveredEventFields
  #payload: { readonly value: P } | undefined
  #headers: Readonly<Record<string, string>> | undefined
  #createdAt: Date | undefined

  constructor(fields: DeliveredEventFields) {
    this.#fields = fields
  }

  get id(): bigint {
    return this.#fields.id
  }
  get position(): bigint {
    return this.#fields.position
  }
  get lane(): number {
    return this.#fields.lane
  }
  get type(): string {
    return this.#fields.type
  }
  get aggregateType(): string {
    return this.#fields.aggregateType
  }
  get aggregateId(): string {
    return this.#fields.aggregateId
  }
  get version(): number {
    return this.#fields.version
  }
  get key(): string | null {
    return this.#fields.key ?? null
  }
  get bytes(): number {
    return this.#fields.bytes ?? Buffer.byteLength(this.#fields.payloadText)
  }
  get payloadText(): string {
    return this.#fields.payloadText
  }
  get attempt(): number {
    return this.#fields.attempt
  }
  get absent(): boolean {
    return this.#fields.absent ?? false
  }

  get createdAt(): Date {
    this.#createdAt ??= new Date(this.#fields.createdAt)
    return this.#createdAt
  }

  get headers(): Readonly<Record<string, string>> {
    const { headersText } = this.#fields
    this.#headers ??= headersText === null ? NO_HEADERS : headersOf(headersText)
    return this.#headers
  }

  get payload(): P {
    if (this.#payload === undefined) {
      const { type, version, payloadText, definitions } = this.#fields
      const parsed: unknown = JSON.parse(payloadText)
      const value = definitions === undefined ? parsed : definitions.read(type, version, parsed)
      this.#payload = { value: value as P }
    }
    return this.#payload.value
  }

  /** The same event with a loaded or corrected payload, or another attempt number. */
  with(changes: Partial<DeliveredEventFields>): DeliveredEvent {
    const fields = this.#fields
    const { id, position, lane, type, aggregateType, aggregateId, version, attempt, key } = this
    const { headersText, createdAt, payloadText, definitions } = fields
    const bytes = changes.payloadText === undefined ? fields.bytes : undefined
    return new DeliveredEvent({
      id,
      position,
      lane,
      type,
      aggregateType,
      aggregateId,
      version,
      attempt,
      key,
      headersText,
      createdAt,
      payloadText,
      definitions,
      bytes,
      absent: this.absent,
      ...changes,
    })
  }

  /** Getters are not own properties; without this a logged event would be `{}`. No payload. */
  toJSON(): Record<string, unknown> {
    const { id, position, lane, type, aggregateType, aggregateId, version, attempt } = this
    const numbers = { id: String(id), position: String(position), lane, version, attempt }
    return { ...numbers, type, aggregateType, aggregateId }
  }
}
