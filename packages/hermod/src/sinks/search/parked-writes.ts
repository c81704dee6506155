/**
 * Writes that an engine took as tasks: one handle for the upserts and the deletions of a call, and
 * the outcome of all of them. A call is done when all of its tasks are.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { delivered, handleMax, type Outcome, type Parked, split } from '../sink.ts'
import type { Call, SearchEngine } from './engine.ts'
import { isGood } from './worst-outcome.ts'

const firstPauseMs = 20
const pauseMsMax = 500

/** Undefined: too long for one handle. */
export function joinHandles(parts: readonly Parked[]): Parked | undefined {
  const parked = JSON.stringify(parts.map(({ parked: part }) => part))
  return parked.length > handleMax ? undefined : { parked }
}

/** Polls all handles with one call. */
export async function pollHandles(
  engine: SearchEngine,
  handles: readonly string[],
  call: Call,
): Promise<readonly (Outcome | undefined)[]> {
  const parts = handles.map(partsOf)
  const answers = await engine.poll?.(parts.flat(), call)
  let at = 0
  return parts.map((list) => {
    const mine = answers?.slice(at, at + list.length) ?? []
    at += list.length
    return list.length === 0 ? foreign() : together(mine)
  })
}

/** For a call that cannot be parked as a whole: waits until it is done or aborted. */
export async function waitFor(engine: SearchEngine, { parked }: Parked, call: Call): Promise<Outcome> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
    const [outcome] = (await engine.poll?.([parked], call)) ?? []
    if (outcome !== undefined) return outcome
    await pause(pauseMs, undefined, call)
  }
}

function partsOf(handle: string): readonly string[] {
  try {
    const parts: unknown = JSON.parse(handle)
    return Array.isArray(parts) && parts.every((part) => typeof part === 'string') ? parts : []
  } catch {
    return []
  }
}

/** Undefined while one of them is running: later events must not overtake it. */
function together(outcomes: readonly (Outcome | undefined)[]): Outcome | undefined {
  if (outcomes.includes(undefined)) return undefined
  return outcomes.find((one) => !isGood(one)) ?? delivered()
}

const foreign = () => split({ code: 'HANDLE_FOREIGN', message: 'not a handle of this sink' })
