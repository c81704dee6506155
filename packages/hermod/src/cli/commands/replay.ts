/** `hermod replay`: send events again, to one subscription, counted first. */
import { Journeys } from '../../journeys/journeys.ts'
import type { ReplayDryRun } from '../../journeys/replay.ts'
import type { ReplayFilter } from '../../journeys/replay-options.ts'
import { type Command, type Context, flagOf, numberOf, textOf, usage } from '../command.ts'
import { type Connected, withDatabase } from '../connect.ts'
import { decisionOf, follow, journeyOptions, started, waitOptions, waits } from '../journey-command.ts'

const { config: _, ...decisionOptions } = journeyOptions

export const command: Command = {
  name: 'replay',
  summary: 'send events again, to one subscription',
  usage: 'hermod replay SUBSCRIPTION (--from-position N | --since TIME) [--dry-run] [--wait | --no-wait]',
  examples: [
    'hermod replay search --since 2026-01-31T08:00:00Z --dry-run',
    'hermod replay search --from-position 4711 --rate 500 --wait',
    'hermod replay search --from-position 1 --types document.* --yes --no-wait',
    'hermod replay search --since 2026-01-31 --aggregate document/42',
  ],
  options: {
    'from-position': { type: 'string', value: 'N', says: 'the first position to send again' },
    since: { type: 'string', value: 'TIME', says: 'everything numbered from this time on' },
    'to-position': { type: 'string', value: 'N', says: 'the last; the live cursor when left out' },
    types: { type: 'string', value: 'A,B', says: 'only these event types; document.* is possible' },
    aggregates: { type: 'string', value: 'A,B', says: 'only of these aggregate types' },
    aggregate: { type: 'string', value: 'TYPE/ID', says: 'only of one document' },
    rate: { type: 'string', value: 'N', says: 'at most so many events a second' },
    confirm: {
      type: 'string',
      value: 'NAME',
      says: 'the subscription again: needed for mail and whatever else tracks every effect',
    },
    ...decisionOptions,
    'dry-run': { type: 'boolean', says: 'only count' },
    ...waitOptions,
  },
  notes: [
    'Workers send it, in turn with live events. hermod journeys pause | resume | cancel ID steers it.',
    'With coalesce: latest only the newest event of an aggregate is sent. See docs/operations/replay.md.',
  ],
  run: (context) => withDatabase(context, (db) => replay(db, context)),
}

async function replay(db: Connected, context: Context): Promise<number> {
  const [subscription, more] = context.args
  if (subscription === undefined || more !== undefined)
    throw usage('name one subscription: hermod replay search --from-position 4711')
  const { terminal } = context
  const journeys = new Journeys(db, {})
  const filter = filterOf(context)
  const counted = await journeys.plan(subscription, filter)
  if (flagOf(context, 'dry-run')) return told(context, counted)
  const question = `Send ${counted.sending} events to ${subscription} again?`
  if (!(await terminal.confirm(question))) return 1
  const { reason = 'asked for on the command line', ...by } = decisionOf(context)
  const rate = numberOf(context, 'rate')
  const confirm = textOf(context, 'confirm')
  const journey = await journeys.replay(subscription, {
    ...filter,
    ...by,
    reason,
    ...(rate !== undefined && { ratePerSecond: rate }),
    ...(confirm !== undefined && { confirm }),
  })
  if (!waits(context)) return started(context, journey)
  const { journey: ended, code } = await follow(context, { journeys }, journey, { here: false })
  if (terminal.json) terminal.document(ended)
  else for (const [name, value] of Object.entries(ended.result ?? {})) terminal.data(`${name}\t${value}`)
  return code
}

function told({ terminal }: Context, { matching, sending, from, to }: ReplayDryRun): number {
  const counts = { matching, sending, from, ...(to !== undefined && { to }) }
  if (terminal.json) terminal.document({ ...counts, dryRun: true })
  else for (const [name, value] of Object.entries(counts)) terminal.data(`${name}\t${value}`)
  terminal.say('Nothing was changed.')
  return 0
}

function filterOf(context: Context): ReplayFilter {
  const list = (name: string) => textOf(context, name)?.split(',')
  const document = textOf(context, 'aggregate')
  const at = document?.indexOf('/') ?? 0
  if (document !== undefined && at < 1) throw usage(`--aggregate must be TYPE/ID (got ${JSON.stringify(document)})`)
  const given = {
    from: textOf(context, 'from-position'),
    since: textOf(context, 'since'),
    to: textOf(context, 'to-position'),
    types: list('types'),
    aggregates: list('aggregates'),
    ...(document !== undefined && {
      aggregate: [document.slice(0, at), document.slice(at + 1)] as const,
    }),
  }
  if ((given.from === undefined) === (given.since === undefined))
    throw usage('say where it begins: --from-position N or --since TIME, one of them')
  return given
}
