/**
 * verify: is the index what the source says? Counts what is missing, orphaned and stale, with
 * examples; `repair` makes the subscription read those rows again, through the log.
 */
import { transaction } from '../database.ts'
import { HermodError } from '../errors.ts'
import { emit } from '../flow/emit.ts'
import type { ResolvedSubscription } from '../subscription-options.ts'
import { type Listener, notify } from '../telemetry.ts'
import { type Compared, Comparison } from './compare.ts'
import type { DeclaredIndex } from './declared-index.ts'
import { engineCall } from './engine-call.ts'
import { untilPassed } from './passing.ts'
import type { Run } from './runner.ts'

export interface VerifyPlan {
  readonly repair?: boolean
  readonly sample?: number
  /** Believes the hashes stored in the index: quicker, but documents changed there by hand are not seen. */
  readonly fast?: boolean
}

export interface VerifyResult extends Compared {
  readonly index: string
  readonly subscription: string
  /** Rows that the subscription was told to read again. */
  readonly repaired: number
  readonly sampled: boolean
  /** Stored hashes were believed; documents changed in the index by hand were not seen. */
  readonly fast: boolean
}

export interface VerifyContext {
  readonly listener: Listener
  subscription(name: string): ResolvedSubscription | undefined
}

/** If the subscription makes no progress for this long, drift cannot be judged. */
const patienceMs = 120_000
const emitRows = 500

export async function verify(run: Run, index: DeclaredIndex, context: VerifyContext): Promise<VerifyResult> {
  const { repair = false, sample, fast = false } = run.journey.plan as VerifyPlan
  const refresh = index.refreshOf(context.subscription(index.subscription))
  if (repair && typeof refresh === 'string') {
    throw new HermodError('HMD_REPAIR_IMPOSSIBLE', `${index.name} cannot be repaired: ${refresh}`)
  }
  const total = sample ?? (await index.source.count(run.db)) * 2
  await run.note({ done: 0, total }, 'compare')
  const looking = lookingOf(run, index, { fast })
  const result = await Comparison.with(looking, async (comparison) => {
    const found = await (sample === undefined ? comparison.all() : comparison.sample(sample))
    tellDrift(context.listener, index, found)
    if (!repair || driftOf(found) === 0 || typeof refresh === 'string') return told(found, 0)
    await run.note({}, 'repair')
    await refreshAll(run, comparison, refresh)
    const left = await comparison.check()
    tellDrift(context.listener, index, left)
    const { source, indexed } = found
    return told({ ...left, source, indexed }, driftOf(found) - driftOf(left))
  })
  return result

  function told(found: Compared, repaired: number): VerifyResult {
    const { name, subscription } = index
    return { index: name, subscription, ...found, repaired, sampled: sample !== undefined, fast }
  }
}

export function driftOf({ missing, orphaned, stale }: Compared): number {
  return missing + orphaned + stale
}

/** How a journey compares; the live generation when none is named. */
export function lookingOf(
  run: Run,
  index: DeclaredIndex,
  { generation, fast }: { readonly generation?: string; readonly fast: boolean },
) {
  let toldMs = 0
  return {
    db: run.db,
    index,
    generation,
    fast,
    look: () => run.look(),
    call: <T>(work: (call: { signal: AbortSignal }) => Promise<T>) => engineCall(run, index, work),
    passed: async () => {
      await untilPassed(run, index.subscription, generation === undefined ? { patienceMs } : {})
    },
    tell: async (looked: number) => {
      if (performance.now() - toldMs < 500) return
      toldMs = performance.now()
      await run.note(generation === undefined ? { done: looked } : { compared: looked })
    },
  }
}

/** Events without state: the row is read when they are delivered. */
export async function refreshAll(
  run: Run,
  comparison: Comparison,
  { type, aggregate }: { readonly type: string; readonly aggregate: string },
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  const options = { known: undefined, nowMs: Date.now(), listener: {} }
  let after = ''
  for (;;) {
    run.look()
    const page = await comparison.found(after, emitRows)
    const last = page.at(-1)
    if (last === undefined) return
    after = last.id
    const events = page
      .filter(({ id }) => !except.has(id))
      .map(({ id }) => ({ type, aggregate: [aggregate, id] as const }))
    if (events.length > 0) await transaction(run.db, (tx) => emit(tx, events, options))
  }
}

function tellDrift(listener: Listener, index: DeclaredIndex, found: Compared): void {
  const { source, indexed, missing, orphaned, stale } = found
  const { name, subscription } = index
  notify(listener, 'drift', {
    index: name,
    subscription,
    source,
    indexed,
    missing,
    orphaned,
    stale,
  })
}
