/** What `rebuild`, `verify` and `backfill` share: start a journey, follow it, say how it ended. */
import type { Started } from '../journeys/indexes.ts'
import type { Journey } from '../journeys/journey.ts'
import type { Outbox } from '../outbox.ts'
import { type CommandOption, type Context, flagOf, textOf, usage } from './command.ts'
import { actorOf } from './commands/rebase.ts'
import { followJourney } from './follow-journey.ts'
import { configOption, openOutbox } from './open-outbox.ts'

export const journeyOptions: Readonly<Record<string, CommandOption>> = {
  config: configOption,
  reason: { type: 'string', value: 'TEXT', says: 'kept in the audit' },
  actor: {
    type: 'string',
    value: 'NAME',
    says: 'who decides; the user of this shell when left out',
  },
  'request-id': { type: 'string', value: 'ID', says: 'the same id again does nothing' },
}

export const waitOptions: Readonly<Record<string, CommandOption>> = {
  wait: { type: 'boolean', says: 'until it ended; the default on a terminal' },
  'no-wait': { type: 'boolean', says: 'only start it; workers carry it out' },
}

export async function withIndex(
  context: Context,
  work: (outbox: Outbox, index: string) => Promise<number>,
): Promise<number> {
  const [index, more] = context.args
  if (index === undefined || more !== undefined) throw usage('name one index, like documents')
  const { outbox, close } = await openOutbox(context, 'ask')
  try {
    return await work(outbox, index)
  } finally {
    await outbox.close().catch(() => {})
    await close()
  }
}

export function decisionOf(context: Context) {
  const reason = textOf(context, 'reason')
  const requestId = textOf(context, 'request-id')
  return {
    actor: actorOf(context),
    ...(reason !== undefined && { reason }),
    ...(requestId !== undefined && { requestId }),
  }
}

export function waits(context: Context): boolean {
  if (flagOf(context, 'no-wait')) return false
  return flagOf(context, 'wait') || process.stderr.isTTY === true
}

export interface Ended {
  readonly journey: Journey
  /** 1 unless it succeeded, 130 after Ctrl-C. */
  readonly code: number
}

/** The id is always printed. A journey that was only started is not a failure. */
export async function follow(
  context: Context,
  outbox: Pick<Outbox, 'journeys'>,
  { id, kind, subject }: Started,
  options: { readonly here: boolean },
): Promise<Ended> {
  const { terminal } = context
  terminal.say(`Journey ${id}: ${kind} of ${subject}.`)
  const { journey, interrupted } = await followJourney(context, outbox, id, options)
  if (interrupted) {
    terminal.say(`It goes on in the workers: hermod journeys show ${id}, hermod journeys cancel ${id}.`)
    return { journey, code: 130 }
  }
  if (journey.state === 'succeeded') return { journey, code: 0 }
  terminal.say(`Journey ${id} is ${journey.state}${journey.error === null ? '' : `: ${journey.error}`}`)
  if (journey.state === 'paused') terminal.say(`hermod journeys resume ${id} goes on.`)
  return { journey, code: 1 }
}

export function started(context: Context, journey: Started): number {
  const { terminal } = context
  if (terminal.json) terminal.document(journey)
  else terminal.data(`journey\t${journey.id}`)
  terminal.say(`Workers carry it out: hermod journeys show ${journey.id}.`)
  return 0
}
