/**
 * Sending again what was delivered while a journey worked on an index: it heals what engines without
 * external versions, and processes that knew an older list of generations, did in the wrong order.
 */
import { select } from '../database.ts'
import type { SearchEngine } from '../sinks/search/engine.ts'
import type { DeclaredIndex } from './declared-index.ts'
import type { Run } from './runner.ts'

/** Released when the journey ends. */
const HOLD = `insert into outbox.keep (holder, pos) values ($1, $2::bigint)
  on conflict (holder) do update set pos = excluded.pos`

export type Replay = (run: Run, subscription: string, after: bigint, upTo?: bigint) => Promise<void>

/** Retention keeps the log from here on while the journey runs. */
export async function holdLog(run: Run, after: bigint): Promise<void> {
  const { kind, id } = run.journey
  await select(run.db, HOLD, [`${kind} ${id}`, String(after)])
}

export async function sendAgain(
  run: Run,
  { engine, subscription }: DeclaredIndex,
  { replay }: { readonly replay: Replay },
  after: unknown,
  upTo: unknown,
): Promise<void> {
  const from = BigInt(String(after))
  const to = upTo == null ? undefined : BigInt(String(upTo))
  if (!isFenced(engine)) await replay(run, subscription, from)
  else if (engine.generationsMs && (to === undefined || to > from)) {
    await replay(run, subscription, from, to)
  }
}

/**
 * An engine that refuses older versions itself has no races to heal, only what was written by those who
 * knew an older list of generations: nothing where the list is read at every write (a call that began
 * before is of events before the noted position, and those are in the rows that were loaded), else
 * the events up to where everybody knew the new one.
 */
function isFenced({ capabilities }: SearchEngine): boolean {
  return capabilities.externalVersion === true
}
