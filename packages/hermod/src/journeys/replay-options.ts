/** What a replay is asked for: checked once, then turned into positions that are still kept. */
import { checkOptions, decimal, flag, got, list, optional, type Problem, refuse, rule, text } from '../check-options.ts'
import { type Database, select } from '../database.ts'
import type { Decision } from '../desk/audit.ts'
import { HermodError } from '../errors.ts'
import type { ReplayPlan } from '../flow/replay.ts'

const KEPT = `select first_pos::text, last_pos::text from outbox.kept_range()`
/** The last position before that time, and whether the log still reaches back that far. */
const BEFORE = `select (select pos from outbox.step where at < $1::timestamptz order by at desc, id desc limit 1)::text as pos,
  ($1::timestamptz > outbox.clock())::text as future,
  (select min(at) from outbox.step) as oldest`

/** Which events. */
export interface ReplayFilter {
  /** The first position to send again; or `since`. */
  readonly from?: bigint | number | string | undefined
  /** Everything numbered from this time on; or `from`. */
  readonly since?: Date | string | undefined
  /** The last position; up to the live cursor when left out. */
  readonly to?: bigint | number | string | undefined
  /** Event types, `document.*` included. */
  readonly types?: readonly string[] | undefined
  /** Aggregate types. */
  readonly aggregates?: readonly string[] | undefined
  /** One document: its aggregate type and id. */
  readonly aggregate?: readonly [type: string, id: string] | undefined
}

export interface ReplayOptions extends ReplayFilter, Decision {
  /** At most so many events a second, over all workers. */
  readonly ratePerSecond?: number | undefined
  /** Only count. */
  readonly dryRun?: boolean | undefined
  /** The subscription's name again: needed where every effect is tracked (mail). */
  readonly confirm?: string | undefined
  readonly reason: string
}

/** An event type or a pattern of them, as in a subscription's `types`. */
const PATTERN = /^(\*|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?)$/
const matching = (pattern: RegExp, says: string) => text((value) => (pattern.test(String(value)) ? undefined : says))
const positionRule = rule(readPosition)

const spec = {
  from: optional(positionRule),
  since: optional(rule(readTime)),
  to: optional(positionRule),
  types: optional(list(matching(PATTERN, "must be a type like 'a.b', 'a.*' or '*'"), { min: 1 })),
  aggregates: optional(list(matching(/^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/, 'must be an aggregate type'), { min: 1 })),
  aggregate: optional(rule(readAggregate)),
  ratePerSecond: optional(decimal({ min: 0.1, max: 1_000_000 })),
  dryRun: flag(false),
  confirm: optional(text(() => undefined)),
  actor: optional(text(() => undefined)),
  reason: optional(text(() => undefined)),
  requestId: optional(text(() => undefined)),
}

export interface Wanted {
  readonly dryRun: boolean
  readonly plan: ReplayPlan
}

/** Reports all problems at once. For positions outside the log, it names the range that exists. */
export async function wantedReplay(db: Database, given: ReplayFilter | ReplayOptions): Promise<Wanted> {
  const options = checkOptions('replay', given, spec)
  const { from, since, to, types, aggregates, aggregate, ratePerSecond, dryRun } = options
  if ((from === undefined) === (since === undefined))
    refuse('replay', [{ field: 'from', says: 'or since is needed, one of them' }])
  const [kept] = await select(db, KEPT)
  const first = BigInt(kept?.first_pos as string)
  const last = BigInt(kept?.last_pos as string)
  const start = from ?? (await positionSince(db, since as Date, first, last))
  // Nothing was ever removed: 0 means the beginning.
  const begin = start === 0n && first === 1n ? 1n : start
  if (begin < first || begin > last + 1n) throw outOfRange(begin, first, last)
  if (to !== undefined && (to < begin || to > last)) throw outOfRange(to, begin, last)
  const bounds = { from: String(begin), ...(to !== undefined && { to: String(to) }) }
  const filter = { types, aggregates, aggregate, ratePerSecond }
  const plan = { ...bounds, ...JSON.parse(JSON.stringify(filter)) } as ReplayPlan
  return { dryRun, plan }
}

async function positionSince(db: Database, since: Date, first: bigint, last: bigint): Promise<bigint> {
  const [row] = await select(db, BEFORE, [since.toISOString()])
  if (row?.future === 'true')
    refuse('replay', [{ field: 'since', says: `must not lie in the future${got(since.toJSON())}` }])
  const position = row?.pos == null ? 1n : BigInt(row.pos) + 1n
  if (position >= first) return position
  throw outOfRange(position, first, last, row?.oldest)
}

function outOfRange(position: bigint, first: bigint, last: bigint, since?: string | null): HermodError {
  const range = first > last ? 'no positions are kept' : `positions ${first} to ${last} are kept`
  const details = { position: String(position), first: String(first), last: String(last) }
  return new HermodError('HMD_REPLAY_RANGE', `position ${position} is out of range: ${range}`, {
    details: { ...details, ...(since != null && { since: new Date(since).toISOString() }) },
  })
}

function readPosition(value: unknown, field: string, problems: Problem[]): bigint {
  if (/^\d{1,18}$/.test(String(value)) && typeof value !== 'object') return BigInt(value as string)
  problems.push({ field, says: `must be a position, a whole number${got(value)}` })
  return 0n
}

function readTime(value: unknown, field: string, problems: Problem[]): Date {
  const date = value instanceof Date ? value : new Date(typeof value === 'string' ? value : Number.NaN)
  if (Number.isNaN(date.getTime())) problems.push({ field, says: `must be a Date or an ISO 8601 time${got(value)}` })
  return date
}

function readAggregate(value: unknown, field: string, problems: Problem[]): readonly [string, string] {
  const pair = Array.isArray(value) ? value : []
  const fits = pair.length === 2 && pair.every((each) => typeof each === 'string' && each !== '')
  if (!fits) problems.push({ field, says: `must be [aggregate type, id]${got(value)}` })
  return [pair[0], pair[1]]
}
