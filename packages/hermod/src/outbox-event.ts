/** What a sink gets. Payload and headers are parsed when first read, never before. */
export interface OutboxEvent<P = unknown> {
  readonly id: bigint
  /** The public number of the event: ascending within an aggregate. */
  readonly position: bigint
  readonly lane: number
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly version: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly createdAt: Date
  /** Bytes of the payload's JSON. */
  readonly bytes: number
  /** The JSON as it was emitted (or loaded, or corrected), never parsed. */
  readonly payloadText: string
  /** Parsed, and with typed events brought to the declared version. */
  readonly payload: P
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The subscription's load() found no row: delete it at the destination. */
  readonly absent: boolean
}
