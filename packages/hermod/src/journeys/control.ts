/**
 * pause, resume and cancel a journey: each is one transaction that locks its row, looks at it, and
 * leaves one audit row. The runner of the journey notices within a second.
 */
import { type Database, select } from '../database.ts'
import { checkDecision, type Decided, type Decision, decide } from '../desk/audit.ts'
import { HermodError } from '../errors.ts'
import { type Asked, findJourney, type Journey, type JourneyState } from './journey.ts'

const LOCK = `select state from outbox.journey where id = $1::bigint for update`
const ASK = `select (outbox.ask_journey($1::bigint, $2)).id`

const VERBS = {
  pause: { want: 'pause', allowed: ['queued', 'running', 'paused'] },
  resume: { want: 'run', allowed: ['paused', 'running', 'failed'] },
  cancel: { want: 'cancel', allowed: ['queued', 'running', 'paused'] },
} as const satisfies Record<string, { want: Asked; allowed: readonly JourneyState[] }>

export type JourneyVerb = keyof typeof VERBS

export type ControlResult = Journey & Decided

export async function control(db: Database, verb: JourneyVerb, id: bigint, given: Decision): Promise<ControlResult> {
  const by = checkDecision(given)
  const { kind, subject } = await journeyNamed(db, id)
  const { want, allowed } = VERBS[verb]
  const command = { action: `${kind}.${verb}`, subscription: subject, lanes: [], by }
  const decided = await decide<object>(db, command, async (tx) => {
    const [now] = await select(tx, LOCK, [String(id)])
    const state = now?.state as JourneyState
    if (!(allowed as readonly JourneyState[]).includes(state)) throw wrongState(id, state, allowed)
    await select(tx, ASK, [String(id), want])
    return { count: 1, before: { state }, after: { journey: String(id) } }
  })
  const { requestId, repeated } = decided
  return { ...(await journeyNamed(db, id)), requestId, repeated }
}

export async function journeyNamed(db: Database, id: bigint): Promise<Journey> {
  const found = await findJourney(db, id)
  if (found !== undefined) return found
  throw new HermodError('HMD_JOURNEY_UNKNOWN', `there is no journey ${id}`)
}

function wrongState(id: bigint, state: JourneyState, allowed: readonly string[]): HermodError {
  return new HermodError('HMD_JOURNEY_STATE', `journey ${id} is ${state}`, {
    details: { state, allowed },
    fix: `Only a journey that is ${allowed.join(', ')} can be asked for this.`,
  })
}
