/**
 * replay: events that were delivered are sent again, by the owners of the lanes and in turn with
 * live batches. It is counted first, and ends when every lane has reached its live cursor. The
 * journey's runner only watches and records progress.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Database, type PoolClient, select } from '../database.ts'
import { checkDecision, type Decided, type Decision, subscriptionNamed } from '../desk/audit.ts'
import { HermodError } from '../errors.ts'
import { type ReplayPlan, replayWindow } from '../flow/replay.ts'
import { createJourney, isEnded, type Journey } from './journey.ts'
import { type ReplayFilter, type ReplayOptions, wantedReplay } from './replay-options.ts'
import { type JourneyHandler, JourneyStopped, type Run } from './runner.ts'

const LANES = `select l.lane::text, c.pos::text from outbox.lane l cross join lateral outbox.cursor_of($1, l.lane) c
  where l.subscription = $1 order by l.lane`
const BEGIN = `select outbox.begin_replay($1::bigint)`
const HOLD = `insert into outbox.keep (holder, pos) values ('replay ' || $1, $2::bigint)
  on conflict (holder) do update set pos = excluded.pos`
const COUNTS = `select count(*)::text as lanes, count(*) filter (where not met)::text as open, coalesce(sum(sent), 0)::text as sent,
    coalesce(sum(superseded), 0)::text as superseded, coalesce(sum(failed), 0)::text as failed, min(pos) filter (where not met)::text as low,
    (select mode from outbox.subscription where name = $2) as mode, (select held_cause from outbox.subscription where name = $2) as held,
    (select first_pos from outbox.kept_range())::text as first
  from outbox.replay where journey = $1::bigint`
const FORGET = `delete from outbox.replay where journey = $1::bigint`

/** Log rows counted by one statement. Counting pauses as long as each statement took. */
const windowRows = 2_000
const lookMs = 250

export interface ReplayCount {
  /** Events that the filter matches. */
  readonly matching: number
  /** Those that would be sent: with `coalesce: 'latest'` the newest of each aggregate. */
  readonly sending: number
  readonly from: bigint
  readonly to: bigint | undefined
}

export interface ReplayDryRun extends ReplayCount {
  readonly dryRun: true
}

export type ReplayStart = Journey & Decided & { readonly dryRun: false }

/** Counts; nothing is written. */
export async function planReplay(db: Database, subscription: string, given: ReplayFilter): Promise<ReplayDryRun> {
  await subscriptionNamed(db, subscription)
  const { plan } = await wantedReplay(db, given)
  return { ...(await count(db, subscription, plan)), dryRun: true }
}

/** Counts, then queues it with its audit row. */
export async function startReplay(db: Database, subscription: string, given: ReplayOptions): Promise<ReplayStart> {
  const by = checkDecision(given, true)
  const { ledger } = await subscriptionNamed(db, subscription)
  if (ledger === 'true' && given.confirm !== subscription) throw askByName(subscription)
  const { plan } = await wantedReplay(db, given)
  const { matching, sending } = await count(db, subscription, plan)
  const progress = { done: 0, total: sending }
  const journey = await createJourney(
    db,
    { kind: 'replay', subject: subscription, plan: { ...plan, matching, sending }, progress },
    by,
    begin,
  )
  return { ...journey, dryRun: false }
}

async function begin(tx: PoolClient, id: string): Promise<void> {
  await select(tx, BEGIN, [id])
}

async function count(db: Database, subscription: string, plan: ReplayPlan): Promise<ReplayCount> {
  const counts = { matching: 0, sending: 0 }
  for (const { lane, pos } of await select(db, LANES, [subscription])) {
    const upTo = BigInt(pos as string)
    let after = BigInt(plan.from) - 1n
    while (after < upTo) {
      const range = { after, upTo, rowsMax: windowRows }
      const startedMs = performance.now()
      const window = await replayWindow(db, subscription, Number(lane), plan, range)
      await pause(performance.now() - startedMs)
      counts.matching += window.matching
      counts.sending += window.positions.length
      after = window.through
    }
  }
  const to = plan.to === undefined ? undefined : BigInt(plan.to)
  return { ...counts, from: BigInt(plan.from), to }
}

function askByName(subscription: string): HermodError {
  return new HermodError(
    'HMD_REPLAY_LEDGER',
    `${subscription} tracks every effect: a replay would send its messages a second time`,
    { field: 'confirm' },
  )
}

/** What `replayWithin` needs of the list of journeys. */
interface ReplayControl {
  wake(): void
  show(id: bigint): Promise<Journey | undefined>
  cancel(id: bigint, by: Decision): Promise<unknown>
}

/**
 * Inside another journey: sends everything after a position again and waits for it. Asked again after
 * a crash it finds the one it has begun.
 */
export async function replayWithin(
  run: Run,
  journeys: ReplayControl,
  subscription: string,
  after: bigint,
  upTo?: bigint,
): Promise<void> {
  const { db, journey } = run
  const by = { actor: journey.requestedBy, reason: `${journey.kind} ${journey.id}` }
  // A journey may replay in more than one phase.
  const requestId = `${by.reason} of ${journey.subject}, ${run.phase}, after ${after}`
  const plan = { from: String(after + 1n), ...(upTo !== undefined && { to: String(upTo) }) }
  const made = { kind: 'replay', subject: subscription, plan } as const
  const { id } = await createJourney(db, made, { ...by, requestId }, begin)
  journeys.wake()
  try {
    for (;;) {
      const found = await journeys.show(id)
      if (found === undefined || found.state === 'succeeded') return
      if (isEnded(found)) throw new HermodError('HMD_JOURNEY_STATE', `replay ${id} is ${found.state}: ${found.error}`)
      await run.pause(lookMs)
    }
  } catch (error) {
    if (error instanceof JourneyStopped && error.why === 'cancel')
      await journeys.cancel(id, { ...by, requestId: `${requestId}, cancelled` }).catch(() => {})
    throw error
  }
}

/** The owners of the lanes do the work; this handler reports how far they are. */
export const replayHandler: JourneyHandler = {
  kind: 'replay',
  parallelMax: 64,
  async run(run) {
    try {
      return await follow(run)
    } catch (error) {
      // A process that stops after everything was sent still finishes the journey.
      if (!(error instanceof JourneyStopped) || error.why !== 'stop') throw error
      const counts = await look(run)
      if (counts.open > 0) throw error
      return finish(run, counts)
    }
  },
  async undo({ db, journey: { id } }) {
    await select(db, FORGET, [String(id)])
  },
}

interface Counts {
  readonly lanes: number
  readonly open: number
  readonly sent: number
  readonly superseded: number
  readonly failed: number
  readonly low: string | null
  /** Why nothing is sent now. */
  readonly waiting: string | null
}

async function follow(run: Run): Promise<object> {
  const { plan } = run.journey
  const first = await look(run)
  await hold(run, first.low ?? String(BigInt(plan.from as string) - 1n))
  for (;;) {
    const counts = await look(run)
    if (counts.open === 0) return finish(run, counts)
    const { sent, superseded, failed, waiting } = counts
    const done = sent + failed
    await run.note({ done, superseded, failed, waiting, lanesLeft: counts.open }, 'send')
    if (counts.low !== null) await hold(run, counts.low)
    await run.pause(lookMs)
  }
}

/** Retention stays behind the lowest lane. */
async function hold({ db, journey: { id } }: Run, position: string): Promise<void> {
  await select(db, HOLD, [String(id), position])
}

async function look({ db, journey: { id, subject, plan } }: Run): Promise<Counts> {
  const [row] = await select(db, COUNTS, [String(id), subject])
  if (Number(row?.lanes) === 0) throw new HermodError('HMD_SUBSCRIPTION_UNKNOWN', `the subscription ${subject} is gone`)
  const low = row?.low ?? null
  const began = low === null ? undefined : BigInt(low) + 1n
  // Retention may have removed rows between counting and starting, or while the journey had failed.
  if (began === BigInt(plan.from as string) && began < BigInt(row?.first as string))
    throw new HermodError('HMD_REPLAY_RANGE', `positions before ${row?.first} were removed`)
  const { mode, held } = row ?? {}
  return {
    lanes: Number(row?.lanes),
    open: Number(row?.open),
    sent: Number(row?.sent),
    superseded: Number(row?.superseded),
    failed: Number(row?.failed),
    low,
    waiting: mode !== 'live' ? `${subject} is ${mode}` : (held ?? null),
  }
}

async function finish(run: Run, { sent, superseded, failed }: Counts): Promise<object> {
  await select(run.db, FORGET, [String(run.journey.id)])
  const done = sent + failed
  const end = { done, total: done, superseded, failed, waiting: null, lanesLeft: 0 }
  await run.note(end).catch(() => {})
  return { sent, superseded, failed }
}
