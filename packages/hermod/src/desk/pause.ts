/**
 * pause, resume, and going live after a dry run. A call in flight when a subscription is paused
 * finishes and counts. A dry run never counts as delivered.
 */
import { type Database, type PoolClient, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { checkDecision, type Decided, type Decision, decide, type Made, subscriptionNamed } from './audit.ts'

export type Mode = 'live' | 'dry-run' | 'paused'

const MODE = `update outbox.subscription set mode = $2, mode_says = $3, mode_by = $4, mode_since = outbox.clock() where name = $1`

/** Batches read under the old mode are void. Calls may be under way: for the next owners it is a take-over. */
const VOID = `update outbox.lane set owner = outbox.interrupted(owner), fence = fence + 1, lease_until = '-infinity'
  where subscription = $1`

const FORGET_SHADOW = `delete from outbox.shadow where subscription = $1`

/** Start now: events that were only rehearsed are skipped, have no state, and are counted in the audit row. */
const SKIP = `with head as (select coalesce((select pos from outbox.step order by id desc limit 1), 0) as pos
  ), moved as (
    insert into outbox.cursor (subscription, lane, fence, pos, delivered)
    select l.subscription, l.lane, l.fence, h.pos, c.delivered from outbox.lane l
     cross join head h cross join lateral outbox.cursor_of(l.subscription, l.lane) c
     where l.subscription = $1 and c.pos < h.pos
  )
  update outbox.subscription s set start_pos = greatest(s.start_pos, h.pos) from head h where s.name = $1`

/** Older cursor entries would stay below the new one for ever. */
const PRUNE = `delete from outbox.cursor c using outbox.lane l where c.subscription = $1 and l.subscription = $1 and l.lane = c.lane
  and (c.fence, c.pos) < (select n.fence, n.pos from outbox.cursor_of($1, l.lane) n)`

const BEFORE_PAUSE = `select before ->> 'mode' as mode from outbox.audit
  where subscription = $1 and action = 'pause' and before ->> 'mode' <> 'paused' order by id desc limit 1`

export interface ModeOptions extends Decision {
  /** Only after a dry run: deliver what it rehearsed, or start at the head of the log. */
  readonly from?: 'where-it-began' | 'now' | undefined
}

export interface ModeResult extends Decided {
  readonly mode: Mode
  readonly before: Mode
  /** Events only rehearsed and now skipped. */
  readonly skipped: number
}

export function pause(db: Database, subscription: string, by: Decision): Promise<ModeResult> {
  return setMode(db, subscription, 'paused', by)
}

/** Back to the former mode: a paused dry run continues as a dry run. */
export async function resume(db: Database, subscription: string, by: Decision): Promise<ModeResult> {
  const { mode } = await subscriptionNamed(db, subscription)
  if (mode !== 'paused' && by.requestId === undefined) throw notPaused(subscription, mode)
  const [was] = await select(db, BEFORE_PAUSE, [subscription])
  return setMode(db, subscription, (was?.mode ?? 'live') as Mode, by, 'resume')
}

export async function setMode(
  db: Database,
  subscription: string,
  mode: Mode,
  options: ModeOptions,
  action: string = mode === 'paused' ? 'pause' : 'mode',
): Promise<ModeResult> {
  const by = checkDecision(options)
  if (!['live', 'dry-run', 'paused'].includes(mode)) {
    throw new HermodError('HMD_OPTION_INVALID', `mode must be live, dry-run or paused`, {
      field: 'mode',
    })
  }
  await subscriptionNamed(db, subscription)
  const lanes = Array.from({ length: 256 }, (_, lane) => lane)
  const command = { action, subscription, lanes, by }
  return decide<ModeResult>(db, command, (tx) => change(tx, subscription, mode, options))
}

async function change(tx: PoolClient, subscription: string, mode: Mode, options: ModeOptions): Promise<Made> {
  const now = await subscriptionNamed(tx, subscription)
  const before = now.mode as Mode
  const ends = mode === 'live' && (before === 'dry-run' || now.rehearsed === 'true')
  if (ends && options.from === undefined) throw askFrom(subscription)
  if (before !== mode && (before === 'dry-run' || mode === 'dry-run' || ends)) await select(tx, VOID, [subscription])
  const skipped = ends && options.from === 'now' ? await skip(tx, subscription) : 0
  if (ends) await select(tx, FORGET_SHADOW, [subscription])
  await select(tx, MODE, [subscription, mode, options.reason ?? null, options.actor])
  const after = { mode, before, skipped }
  return { count: 1, before: { mode: before }, after }
}

async function skip(tx: PoolClient, subscription: string): Promise<number> {
  const [row] = await select(tx, 'select past::text from outbox.lag_of($1, 100000)', [subscription])
  await select(tx, SKIP, [subscription])
  await select(tx, PRUNE, [subscription])
  return Number(row?.past)
}

function askFrom(subscription: string): HermodError {
  return new HermodError(
    'HMD_OPTION_INVALID',
    `${subscription} ends a dry run: say from 'where-it-began' (deliver what was rehearsed) or 'now' (skip it)`,
    { field: 'from' },
  )
}

function notPaused(subscription: string, mode: string | null | undefined): HermodError {
  return new HermodError('HMD_DELIVERY_STATE', `${subscription} is ${mode}, not paused`, {
    fix: 'Nothing to do: it is running.',
    details: { state: mode, allowed: ['paused'] },
  })
}
