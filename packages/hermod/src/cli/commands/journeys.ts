/** `hermod journeys`: long work (replay, rebuild, verify, backfill): list, show, pause, resume, cancel. */
import { duration } from '../../desk/health.ts'
import { HermodError } from '../../errors.ts'
import type { JourneyVerb } from '../../journeys/control.ts'
import {
  type Journey,
  type JourneyKind,
  type JourneyState,
  journeyKinds,
  journeyStates,
} from '../../journeys/journey.ts'
import { Journeys } from '../../journeys/journeys.ts'
import { type Command, type Context, numberOf, textOf, usage } from '../command.ts'
import { withDatabase } from '../connect.ts'
import { decisionOf, journeyOptions } from '../journey-command.ts'
import { ago } from '../terminal.ts'

type Verb = (journeys: Journeys, context: Context) => Promise<number>

const steer =
  (verb: JourneyVerb): Verb =>
  async (journeys, context) => {
    const { terminal } = context
    const journey = await journeys[verb](idOf(context, verb), decisionOf(context))
    if (terminal.json) terminal.document(journey)
    else terminal.data(`${journey.id}\t${journey.state}`)
    const soon = journey.owner !== null && journey.asked !== 'run'
    terminal.say(soon ? `Asked; whoever runs it will ${verb} it within seconds.` : 'Done.')
    return 0
  }

const verbs: Readonly<Record<string, Verb>> = {
  list,
  show,
  pause: steer('pause'),
  resume: steer('resume'),
  cancel: steer('cancel'),
}

const { config: _, ...decisionOptions } = journeyOptions

export const command: Command = {
  name: 'journeys',
  summary: 'replays, rebuilds and verifications: list, show, pause, resume, cancel',
  usage: 'hermod journeys list | show ID | pause ID | resume ID | cancel ID',
  examples: [
    'hermod journeys list',
    'hermod journeys list --state running --kind replay',
    'hermod journeys show 17',
    'hermod journeys pause 17 --reason "peak hours"',
    'hermod journeys resume 17',
    'hermod journeys cancel 17',
  ],
  options: {
    kind: { type: 'string', value: 'KIND', says: journeyKinds.join(', ') },
    subject: { type: 'string', value: 'NAME', says: 'only of this subscription or index' },
    state: { type: 'string', value: 'STATE', says: 'only in these states (a,b)' },
    limit: { type: 'string', value: 'N', says: 'rows to list (50)' },
    ...decisionOptions,
  },
  run: (context) => {
    const [name = 'list'] = context.args
    const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined
    if (verb === undefined) throw usage(`journeys has no verb ${name}; it has ${Object.keys(verbs).join(', ')}`)
    return withDatabase(context, (db) => verb(new Journeys(db, {}), context))
  },
}

function idOf(context: Context, verb: string): bigint {
  const [, id] = context.args
  if (id !== undefined && /^\d{1,18}$/.test(id)) return BigInt(id)
  throw usage(`journeys ${verb} needs a number: hermod journeys ${verb} 17`)
}

async function list(journeys: Journeys, context: Context): Promise<number> {
  const { terminal } = context
  const found = await journeys.list({
    kind: oneOf(journeyKinds, textOf(context, 'kind'), 'kind') as JourneyKind | undefined,
    subject: textOf(context, 'subject'),
    states: textOf(context, 'state')
      ?.split(',')
      .map((state) => oneOf(journeyStates, state, 'state') as JourneyState),
    limit: numberOf(context, 'limit'),
  })
  if (terminal.json) terminal.document({ journeys: found })
  else
    terminal.table(
      ['id', 'kind', 'subject', 'state', 'phase', 'done', 'of', 'by', 'when', 'says'],
      found.map((journey) => [
        ...[journey.id, journey.kind, journey.subject, wordOf(journey), journey.phase],
        ...[journey.progress.done, journey.progress.total, journey.requestedBy],
        ...[ago(journey.createdAt, Date.now(), duration), saysOf(journey)],
      ]),
    )
  terminal.say(found.length === 0 ? 'No journeys.' : 'hermod journeys show ID tells more.')
  return 0
}

async function show(journeys: Journeys, context: Context): Promise<number> {
  const { terminal } = context
  const id = idOf(context, 'show')
  const journey = await journeys.show(id)
  if (journey === undefined) throw new HermodError('HMD_JOURNEY_UNKNOWN', `there is no journey ${id}`)
  if (terminal.json) {
    terminal.document(journey)
    return 0
  }
  for (const [name, value] of Object.entries({ ...journey, state: wordOf(journey) })) {
    if (value === null) continue
    terminal.data(`${name}\t${textFor(value)}`)
  }
  return 0
}

/** A pause or cancel that was requested and is not done yet. */
function wordOf({ state, asked }: Journey): string {
  return asked === 'run' || state !== 'running' ? state : `${state}, asked to ${asked}`
}

function saysOf({ error, progress: { waiting } }: Journey): string | null {
  if (error !== null) return error
  return waiting == null ? null : `waiting: ${waiting}`
}

function textFor(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function oneOf<T extends string>(known: readonly T[], given: string | undefined, name: string): T | undefined {
  if (given === undefined || known.includes(given as T)) return given as T | undefined
  throw usage(`--${name} must be one of ${known.join(', ')} (got ${JSON.stringify(given)})`)
}
