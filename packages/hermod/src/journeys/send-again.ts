/**
 * Sending again what was delivered while a journey worked on an index: it heals what engines without
 * external versions, and processes that knew an older list of generations, did in the wrong order.
 */
import { select } from '../database.ts'
import type { SearchEngine } from '../sinks/search/engine.ts'
import type { DeclaredIndex } from './declared-index.ts'
import type { Run } from './runner.ts'

/** The journey's end lets it go. */
const HOLD = `insert into outbox.keep (holder, pos) values ($1, $2::bigint)
  on conflict (holder) do update set pos = excluded.pos`

export type Replay = (run: Run, subscription: string, after: bigint) => Promise<void>

/** The log is kept from here on while the journey goes on. */
export async function holdLog(run: Run, after: bigint): Promise<void> {
  const { kind, id } = run.journey
  await select(run.db, HOLD, [`${kind} ${id}`, String(after)])
}

export async function sendAgain(
  run: Run,
  { engine, subscription }: DeclaredIndex,
  { replay }: { readonly replay: Replay },
  after: unknown,
): Promise<void> {
  if (needsReplay(engine)) await replay(run, subscription, BigInt(String(after)))
}

/**
 * An engine that refuses older versions itself, and asks for its generations at every write, has
 * nothing to heal: a call that began before a generation was made is of events before the position
 * that was noted, and those are in the rows that were loaded.
 */
function needsReplay({ capabilities, generationsMs = 0 }: SearchEngine): boolean {
  return capabilities.externalVersion !== true || generationsMs > 0
}
