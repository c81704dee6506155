/**
 * What workers tell each other through NOTIFY: that something was committed, or numbered and where.
 * These are only hints: a worker that misses one finds the events by polling.
 */
import { type Database, select } from '../database.ts'
import type { News } from '../flow/sequence.ts'

export const channel = 'hermod_outbox'

export type Heard =
  /** There is something to number. */
  | { readonly what: 'committed' }
  /** A subscription was made, changed or removed. */
  | { readonly what: 'defined' }
  /** There is something to claim: in these lanes, or anywhere. */
  | { readonly what: 'numbered'; readonly news?: News | undefined }

/** Best effort, in a transaction of its own: a wake-up can never abort a step. */
export async function tell(db: Database, heard: Heard): Promise<void> {
  const text = `select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`
  await select(db, text, [channel, textOf(heard)]).catch(() => {})
}

export function textOf(heard: Heard): string {
  if (heard.what !== 'numbered' || heard.news === undefined) return heard.what
  const { lanes, kinds, from, to } = heard.news
  return `numbered ${lanes.join(',')} ${kinds.join(',')} ${from} ${to}`
}

/** A text of another version that is not understood means: look everywhere. */
export function hear(text: string | undefined): Heard {
  if (text === 'defined') return { what: 'defined' }
  if (text === 'numbered') return { what: 'numbered' }
  const [, lanes, kinds, from, to] = /^numbered ([\d,]+) ([\d,]+) (\d+) (\d+)$/.exec(text ?? '') ?? []
  if (lanes === undefined || kinds === undefined || from === undefined || to === undefined) return { what: 'committed' }
  return {
    what: 'numbered',
    news: { lanes: numbers(lanes), kinds: numbers(kinds), from: BigInt(from), to: BigInt(to) },
  }
}

function numbers(list: string): number[] {
  return list.split(',').map(Number)
}
