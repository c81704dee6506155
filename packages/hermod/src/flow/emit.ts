/**
 * emit: one insert inside the caller's transaction, for one event or ten thousand. It never opens a
 * transaction of its own, and refuses a client that is known to be outside one.
 */
import { asTx, type Tx } from '../clients/client.ts'
import { literal, type PoolClient } from '../database.ts'
import { fromSqlState, HermodError } from '../errors.ts'
import { eventsMax, type NewEvent, type PreparedEvent, prepareEvents } from '../event.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import { payloadBytesWarn } from '../payload.ts'
import { type Listener, notify } from '../telemetry.ts'

/** Separates the texts of a list. It occurs in no event, so nothing has to be quoted. */
const between = '\x1e'
const listed = (text: string) => `string_to_array(${text}, chr(30), '')`

const emitMany = (lists: readonly string[]) => {
  const [versions, headers, notBefore, keys] = lists.slice(4).map(listed)
  return `outbox.emit_many(${lists.slice(0, 4).map(listed).join(', ')}, ${versions}::smallint[],
    ${headers}, ${notBefore}::timestamptz[], ${keys})`
}

const EMIT = `select string_agg(id::text, ',') as ids
  from ${emitMany(['$1', '$2', '$3', '$4', '$5', '$6', '$7', '$8'].map((at) => `${at}::text`))} as id`

const EMIT_ONE = `select outbox.emit_one($1::text, $2::text, $3::text, $4::text, $5::text::smallint,
  $6::text, $7::text::timestamptz)::text as ids`

const LOCK = `select outbox.lock($1::text::text[], $2::text::text[])::text as locked`
const LOCK_TIMEOUT = `select set_config('lock_timeout', $1::text, true) as value`

/** The most events that travel with COMMIT; quoting more costs more than the message it saves. */
const ridesMax = 10

export const lockWaitMs = 10_000
export const lockMax = 100

export interface EmitOptions {
  readonly known: EventDefinitions | undefined
  readonly nowMs: number
  readonly listener: Listener | undefined
  readonly prepare?: boolean
}

/** Returns the ids, in the order of the events. */
export async function emit(
  client: unknown,
  events: NewEvent | readonly NewEvent[],
  { known, nowMs, listener, prepare = false }: EmitOptions,
): Promise<bigint[]> {
  const tx = asTx(client)
  const prepared = checked(events, { known, nowMs, listener })
  if (prepared.length === 0) return []
  const [row] = await insert(tx, prepared, prepare)
  return String(row?.ids).split(',').map(BigInt)
}

/** Collects the events of a transaction, to send them with its COMMIT. */
export class Waiting {
  readonly #options: EmitOptions
  #events: PreparedEvent[] = []
  #closed = false

  constructor(options: EmitOptions) {
    this.#options = options
  }

  /** Events are checked now: a refused one never reaches the database. */
  add(events: NewEvent | readonly NewEvent[]): void {
    if (this.#closed) throw new HermodError('HMD_EMIT_OUTSIDE_TRANSACTION', 'this transaction has ended')
    for (const event of checked(events, this.#options)) this.#events.push(event)
  }

  /** No event can be added from now on. */
  close(): void {
    this.#closed = true
  }

  /** Few events travel with COMMIT; before many of them, one message more costs little. */
  async commit(client: PoolClient): Promise<unknown> {
    this.close()
    const events = this.#events
    if (events.length === 0) return client.query('commit')
    if (events.length <= ridesMax) return client.query(`${statement(events)}commit`)
    for (let from = 0; from < events.length; from += eventsMax)
      await insert(asTx(client), events.slice(from, from + eventsMax), this.#options.prepare)
    return client.query('commit')
  }
}

function statement(events: readonly PreparedEvent[]): string {
  const [first] = events
  return first !== undefined && isAlone(events)
    ? `select outbox.emit_one(${scalars(first).map(literal).join(',')});`
    : `select count(*) from ${emitMany(parameters(events).map(literal))};`
}

function insert(tx: Tx, events: readonly PreparedEvent[], prepare = false) {
  const [first] = events
  return first !== undefined && isAlone(events)
    ? query(tx, EMIT_ONE, scalars(first), prepare ? 'hermod_emit_one' : undefined)
    : query(tx, EMIT, parameters(events), prepare ? 'hermod_emit_many' : undefined)
}

/** One event without a key has an SQL function of its own. */
function isAlone(events: readonly PreparedEvent[]): boolean {
  return events.length === 1 && events[0]?.key === null
}

function checked(events: NewEvent | readonly NewEvent[], { known, nowMs, listener }: EmitOptions): PreparedEvent[] {
  const prepared = prepareEvents(events, known, nowMs)
  for (const event of prepared) if (event.bytes > payloadBytesWarn) warnLarge(event, listener)
  return prepared
}

function warnLarge({ type, bytes }: PreparedEvent, listener: Listener | undefined): void {
  const message = `${type} has a payload of ${bytes} bytes; above ${payloadBytesWarn} emit a reference`
  notify(listener, 'warning', { code: 'HMD_PAYLOAD_LARGE', message })
}

function scalars(event: PreparedEvent): (string | null)[] {
  const { type, aggregateType, aggregateId, payload, version, headers, notBefore } = event
  return [type, aggregateType, aggregateId, payload, String(version), headers, notBefore]
}

function parameters(events: readonly PreparedEvent[]): (string | null)[] {
  const some = (pick: (event: PreparedEvent) => string | null) =>
    events.some((event) => pick(event) !== null) ? list(events, pick) : null
  return [
    list(events, (event) => event.type),
    list(events, (event) => event.aggregateType),
    list(events, (event) => event.aggregateId),
    list(events, (event) => event.payload),
    some((event) => (event.version === 1 ? null : String(event.version))),
    some((event) => event.headers),
    some((event) => event.notBefore),
    some((event) => event.key),
  ]
}

function list(events: readonly PreparedEvent[], pick: (event: PreparedEvent) => string | null): string {
  return events.map((event) => pick(event) ?? '').join(between)
}

const QUOTED = /["\\]/g

/** A PostgreSQL array as text: the one form that every client library passes on unchanged. */
export function arrayLiteral(values: readonly (string | number | null)[]): string {
  let text = '{'
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ','
    const value = values[index]
    text += typeof value === 'string' ? `"${value.replace(QUOTED, '\\$&')}"` : (value ?? 'NULL')
  }
  return `${text}}`
}

export type Aggregate = readonly [type: string, id: string | number | bigint]

/** Locks aggregates until the transaction ends: what is read, written and emitted after it is never stale. */
export async function lock(
  client: unknown,
  aggregates: readonly Aggregate[],
  waitMs: number = lockWaitMs,
): Promise<void> {
  const tx = asTx(client)
  if (aggregates.length > lockMax) {
    throw new HermodError('HMD_LOCK_LIMIT', `${aggregates.length} aggregates, at most ${lockMax} at once`)
  }
  const named = prepareEvents(aggregates.map((aggregate) => ({ type: 'lock.taken', aggregate })))
  const [before] = await query(tx, `select current_setting('lock_timeout') as value`, [])
  await query(tx, LOCK_TIMEOUT, [`${waitMs}ms`])
  await query(tx, LOCK, [
    arrayLiteral(named.map((event) => event.aggregateType)),
    arrayLiteral(named.map((event) => event.aggregateId)),
  ]).catch((error) => {
    throw isLockTimeout(error) ? lockTimeout(error, waitMs) : error
  })
  await query(tx, LOCK_TIMEOUT, [String(before?.value ?? '0')])
}

function lockTimeout(cause: unknown, waitMs: number): HermodError {
  const says = `another transaction has held one of these aggregates for ${waitMs} ms`
  return new HermodError('HMD_LOCK_TIMEOUT', says, { cause })
}

/** 55P03, also inside a client library's wrapper. */
function isLockTimeout(error: unknown): boolean {
  for (let link = error as { code?: unknown; cause?: unknown } | undefined, n = 0; link && n < 5; n++) {
    if (link.code === '55P03' || (link as { meta?: { code?: string } }).meta?.code === '55P03') return true
    link = link.cause as typeof link
  }
  return false
}

async function query(tx: Tx, text: string, params: readonly (string | null)[], name: string | undefined = undefined) {
  try {
    return await (name === undefined ? tx.query(text, params) : tx.query(text, params, name))
  } catch (error) {
    throw fromSqlState(error)
  }
}
