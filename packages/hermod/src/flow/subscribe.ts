/**
 * subscribe: writes a subscription's definition under its revision. The same revision with another
 * definition is refused; a raised one takes effect from the position where it is installed.
 */
import { type Database, select } from '../database.ts'
import type { ResolvedSubscription } from '../options.ts'
import { arrayLiteral } from './emit.ts'

const SUBSCRIBE = `select outbox.subscribe($1, $2, $3::jsonb, $4::text[], $5::text[],
  case when $6::int = 0 then (select lanes from outbox.setting) else $6::smallint end,
  $7, $8, $9, $10, $11, $12::bigint)`

const POSITION_AT = `select coalesce((select pos from outbox.step where at <= $1::timestamptz
  order by at desc limit 1), 0)::text as pos`

export async function subscribe(db: Database, subscription: ResolvedSubscription): Promise<void> {
  await select(db, SUBSCRIBE, [
    subscription.name,
    subscription.revision,
    JSON.stringify(definition(subscription)),
    arrayLiteral(subscription.types),
    subscription.aggregates ? arrayLiteral(subscription.aggregates) : null,
    subscription.lanes === 1 ? 1 : 0,
    subscription.order === 'aggregate',
    subscription.coalesce === 'latest',
    subscription.ledger,
    subscription.onDead === 'hold',
    subscription.mode,
    await startPosition(db, subscription.from),
  ])
}

/** What a revision stands for. Its start and its mode are not part of it: they are decided once, at installation. */
function definition(subscription: ResolvedSubscription): object {
  const { types, aggregates, order, coalesce, retry, batch, lanes, priority, rate, callMs, onDead, sink } = subscription
  const policy = { order, coalesce, retry, batch, lanes, priority, rate, callMs, onDead }
  const load = subscription.loads === 'all' ? subscription.load !== undefined : 'references'
  return { types, aggregates, sink: sink.name, load, ...policy }
}

/** Null = the head at the moment of installation. */
export async function startPosition(db: Database, from: ResolvedSubscription['from']): Promise<string | null> {
  if (from === 'now') return null
  if (from === 'beginning') return '0'
  if ('position' in from) return String(from.position)
  const [row] = await select(db, POSITION_AT, [from.time.toISOString()])
  return row?.pos ?? '0'
}
