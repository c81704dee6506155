/** What every change of a person leaves behind, in its own transaction: an audit row and an event. */
import type { Actor } from '../actor.ts'
import { emit, type Platform, type Tx } from '../platform.ts'

/** The part of an actor that is recorded; a log-in acts for itself. */
export type Recorder = Pick<Actor, 'personId' | 'identity' | 'endpoint'> &
  Partial<Pick<Actor, 'requestId' | 'traceparent'>>

export interface Change {
  readonly personId: string
  /** Past tense; the event is called `person.<action>`. */
  readonly action: string
  readonly changes?: Readonly<Record<string, unknown>>
  readonly reason?: string | undefined
}

export async function record(platform: Platform, tx: Tx, by: Recorder, change: Change): Promise<void> {
  await audit(tx, by, change)
  const { personId, action, changes = {} } = change
  const headers = headersOf(by)
  const payload = { id: personId, ...changes }
  await emit(platform, tx, {
    type: `person.${action}`,
    aggregate: ['person', personId],
    payload,
    headers,
  })
}

export function headersOf(by: Recorder): Record<string, string> {
  return {
    ...(by.personId !== null && { actor: by.personId }),
    identity: by.identity,
    endpoint: by.endpoint,
    ...(by.traceparent !== undefined && { traceparent: by.traceparent }),
  }
}

/** Only the audit row, without an event: for facts that change nothing. */
export async function audit(
  tx: Tx,
  { personId: actorId, identity, endpoint, requestId }: Recorder,
  { personId, action, changes = {}, reason }: Change,
): Promise<void> {
  await tx.query(
    `insert into hermod.person_audit (person_id, action, changes, reason, actor_id, identity, endpoint, request_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [personId, action, changes, reason ?? null, actorId, identity, endpoint, requestId ?? null],
  )
}
