/**
 * correct: replaces payload or headers of one delivery, not of the event: the log never changes, the
 * idempotency key stays. Before and after are in the audit row.
 */
import { type Database, type PoolClient, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { headersToText } from '../event-fields.ts'
import { payloadToText } from '../payload.ts'
import { checkDecision, type Decided, type Decision, decide, type Made, subscriptionNamed } from './audit.ts'
import { deliveryAt, type OpenState, refuseState } from './dead.ts'

const CORRECTABLE: readonly OpenState[] = ['dead', 'unknown', 'retrying', 'pending']

/** Under the lane's lock: a call in flight with the old body must not count. */
const READ = `select d.pos::text, d.event_id::text, d.state, outbox.interrupt(s, d)::text as interrupted,
    (s.ledger and d.next_attempt_at <= outbox.clock() and exists (select from outbox.lane l where l.subscription = s.name and l.lane = d.lane
       and l.owner is not null and l.lease_until > outbox.clock()))::text as sending,
    d.correction::text, coalesce(d.correction -> 'payload', e.payload, d.event -> 'payload')::text as payload,
    coalesce(d.correction -> 'headers', e.headers, d.event -> 'headers')::text as headers
  from outbox.subscription s join outbox.delivery d on d.subscription = s.name left join outbox.event e on e.id = d.event_id
 where s.name = $1 and d.lane = $2 and d.pos = $3`

const WRITE = `update outbox.delivery set correction = $4::json, updated_at = outbox.clock()
  where subscription = $1 and lane = $2 and pos = $3`

export interface Correction {
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface CorrectResult extends Decided {
  readonly position: bigint
  /** The state does not change; retry() sends the corrected event. */
  readonly state: string
}

export async function correct(
  db: Database,
  subscription: string,
  position: bigint | number | string,
  correction: Correction,
  options: Decision,
): Promise<CorrectResult> {
  const by = checkDecision(options)
  const changed = checked(correction)
  await subscriptionNamed(db, subscription)
  const { lane, position: pos } = await deliveryAt(db, subscription, position)
  const command = { action: 'correct', subscription, lanes: [lane], by }
  const result = await decide<{ state: string }>(db, command, (tx) => write(tx, subscription, lane, pos, changed))
  const { requestId, repeated, state } = result
  return { requestId, repeated, state, position: BigInt(pos) }
}

/** JSON texts, by the same rules as emit. */
function checked(correction: Correction): Map<'payload' | 'headers', string> {
  const changed = new Map<'payload' | 'headers', string>()
  if ('payload' in correction) changed.set('payload', payloadToText(correction.payload, 'payload').text)
  if (correction.headers !== undefined) changed.set('headers', headersToText(correction.headers, 'headers') ?? '{}')
  if (changed.size > 0) return changed
  throw new HermodError('HMD_OPTION_INVALID', 'correct: give payload, headers or both', {
    field: 'correction',
  })
}

async function write(
  tx: PoolClient,
  subscription: string,
  lane: number,
  pos: string,
  changed: ReadonlyMap<'payload' | 'headers', string>,
): Promise<Made> {
  const { state } = await deliveryAt(tx, subscription, pos)
  refuseState(state, CORRECTABLE, `position ${pos} of ${subscription}`)
  const [row] = await select(tx, READ, [subscription, lane, pos])
  if (row?.sending === 'true') throw mayBeSending(subscription, pos)
  const fields = new Map([...texts(row, row?.correction ?? null), ...changed])
  await select(tx, WRITE, [subscription, lane, pos, objectText(fields)])
  const names = [...changed.keys()]
  const before = `{${names.map((name) => `"${name}":${row?.[name] ?? 'null'}`).join(',')}}`
  return {
    count: 1,
    eventId: row?.event_id ?? undefined,
    position: pos,
    before: JSON.parse(before),
    after: { ...JSON.parse(objectText(changed)), state },
  }
}

/** What was corrected before stays corrected. */
function texts(row: Row | undefined, correction: string | null): [string, string][] {
  if (correction === null) return []
  const names = Object.keys(JSON.parse(correction)) as ('payload' | 'headers')[]
  return names.map((name) => [name, row?.[name] ?? 'null'])
}

function objectText(fields: ReadonlyMap<string, string>): string {
  return `{${[...fields].map(([name, text]) => `"${name}":${text}`).join(',')}}`
}

function mayBeSending(subscription: string, pos: string): HermodError {
  return new HermodError(
    'HMD_DELIVERY_STATE',
    `position ${pos} of ${subscription} is due and may be on its way with the old content`,
    { fix: 'Pause the subscription, correct, and resume it.', details: { state: 'pending' } },
  )
}
