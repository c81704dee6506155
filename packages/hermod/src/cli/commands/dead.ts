/** `hermod dead`: what failed for good, why, and what to do about it. */
import { deadGroups, deadLetters, type OpenState } from '../../desk/dead.ts'
import { discard } from '../../desk/discard.ts'
import { duration } from '../../desk/health.ts'
import { retry, type Which } from '../../desk/retry.ts'
import { show } from '../../desk/show.ts'
import { HermodError } from '../../errors.ts'
import { type Command, type Context, flagOf, numberOf, textOf, usage } from '../command.ts'
import { type Connected, withDatabase } from '../connect.ts'
import { printStory } from '../story.ts'
import { ago } from '../terminal.ts'
import { actorOf } from './rebase.ts'

type Verb = (db: Connected, context: Context) => Promise<number>

const verbs: Readonly<Record<string, Verb>> = {
  list,
  groups,
  show: showOne,
  retry: (db, context) => act(db, context, 'retry'),
  discard: (db, context) => act(db, context, 'discard'),
}

export const command: Command = {
  name: 'dead',
  summary: 'dead letters: list, group, show, retry, discard',
  usage: `hermod dead list | groups | show POSITION | retry | discard SUBSCRIPTION (POSITION | --group G | --all)`,
  examples: [
    'hermod dead groups',
    'hermod dead list --subscription search',
    'hermod dead show 4711',
    'hermod dead retry search 4711',
    'hermod dead retry search --group 3f2a91c0b7de --dry-run',
    'hermod dead discard search --group 3f2a91c0b7de --reason "test data" --yes',
  ],
  options: {
    subscription: { type: 'string', value: 'NAME', says: 'only of this subscription' },
    group: { type: 'string', value: 'G', says: 'only of this group (see: hermod dead groups)' },
    all: { type: 'boolean', says: 'all dead and unknown deliveries of the subscription' },
    reason: { type: 'string', value: 'TEXT', says: 'kept in the audit; needed to discard' },
    actor: {
      type: 'string',
      value: 'NAME',
      says: 'who decides; the user of this shell when left out',
    },
    'request-id': { type: 'string', value: 'ID', says: 'the same id again does nothing' },
    force: { type: 'boolean', says: 'retry although a newer event of the aggregate was delivered' },
    'dry-run': { type: 'boolean', says: 'only count' },
    limit: { type: 'string', value: 'N', says: 'rows to list (50), or to act on at once (1000)' },
    payload: { type: 'boolean', says: 'show payloads too' },
  },
  async run(context) {
    const [name = 'list'] = context.args
    const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined
    if (verb === undefined) throw usage(`dead has no verb ${name}; it has ${Object.keys(verbs).join(', ')}`)
    return withDatabase(context, (db) => verb(db, context))
  },
}

async function list(db: Connected, context: Context): Promise<number> {
  const { terminal } = context
  const rows = await deadLetters(db, {
    subscription: textOf(context, 'subscription'),
    group: textOf(context, 'group'),
    limit: numberOf(context, 'limit'),
  })
  if (terminal.json) terminal.document({ deadLetters: rows })
  else {
    const head = ['position', 'subscription', 'state', 'type', 'aggregate', 'attempts', 'group', 'when', 'error']
    terminal.table(
      head,
      rows.map((row) => [
        ...[row.position, row.subscription, row.state, row.type, row.aggregate.join('/'), row.attempts],
        ...[row.group, ago(row.updatedAt, Date.now(), duration), row.error ?? row.code],
      ]),
    )
  }
  terminal.say(rows.length === 0 ? 'No dead letters.' : 'hermod dead show POSITION tells the story of one.')
  return 0
}

async function groups(db: Connected, context: Context): Promise<number> {
  const { terminal } = context
  const rows = await deadGroups(db, {
    subscription: textOf(context, 'subscription'),
    limit: numberOf(context, 'limit'),
  })
  if (terminal.json) terminal.document({ groups: rows })
  else {
    const head = ['group', 'subscription', 'state', 'count', 'first', 'last', 'sample', 'code', 'message']
    terminal.table(
      head,
      rows.map((row) => [
        ...[row.group, row.subscription, row.state, row.count, ago(row.firstSeenAt, Date.now(), duration)],
        ...[ago(row.lastSeenAt, Date.now(), duration), row.samplePosition, row.code, row.message],
      ]),
    )
  }
  terminal.say(
    rows.length === 0 ? 'No dead letters.' : 'hermod dead retry SUBSCRIPTION --group GROUP --dry-run counts first.',
  )
  return 0
}

async function showOne(db: Connected, context: Context): Promise<number> {
  const [, position] = context.args
  if (position === undefined) throw usage('dead show needs a position: hermod dead show 4711')
  const story = await show(db, { position }, { payload: flagOf(context, 'payload') })
  if (story === undefined) throw new HermodError('HMD_DELIVERY_UNKNOWN', `there is no event at position ${position}`)
  if (context.terminal.json) context.terminal.document(story)
  else printStory(story, context.terminal)
  return 0
}

async function act(db: Connected, context: Context, verb: 'retry' | 'discard'): Promise<number> {
  const [, subscription, position] = context.args
  if (subscription === undefined) throw usage(`dead ${verb} needs a subscription: hermod dead ${verb} search 4711`)
  const which = whichOf(context, verb, position)
  const reason = textOf(context, 'reason')
  if (verb === 'discard' && reason === undefined) throw usage('dead discard needs --reason TEXT')
  const by = {
    actor: actorOf(context),
    reason,
    requestId: textOf(context, 'request-id'),
    limit: numberOf(context, 'limit'),
  }
  const go = (dryRun: boolean) =>
    verb === 'retry'
      ? retry(db, subscription, which, { ...by, force: flagOf(context, 'force'), dryRun })
      : discard(db, subscription, which, { ...by, reason: reason as string, dryRun })
  const counted = await go(true)
  if (flagOf(context, 'dry-run')) return told(context, counted, `${counted.matching} match; nothing was changed.`)
  if (counted.matching === 0 && position === undefined) return told(context, counted, 'Nothing matches.')
  const one = position !== undefined && verb === 'retry'
  const question = `${verb === 'retry' ? 'Retry' : 'Discard'} ${counted.matching} of ${subscription}?`
  if (!one && !(await context.terminal.confirm(question))) return 1
  const result = await go(false)
  return told(context, result, `Done; hermod status shows what follows. Request ${result.requestId}.`)
}

function whichOf(context: Context, verb: string, position: string | undefined): Which {
  const group = textOf(context, 'group')
  const all = flagOf(context, 'all')
  const given = [position, group, all || undefined].filter((each) => each !== undefined)
  if (given.length !== 1) throw usage(`dead ${verb}: name a position, --group G or --all, one of them`)
  const state: readonly OpenState[] = ['dead', 'unknown']
  return position ?? { state, ...(group !== undefined && { group }) }
}

function told({ terminal }: Context, result: object, says: string): number {
  if (terminal.json) terminal.document(result)
  else for (const [name, value] of Object.entries(result)) terminal.data(`${name}\t${value}`)
  terminal.say(says)
  return 0
}
