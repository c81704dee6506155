/** `hermod verify`: is the index what the source says? Exit 0 yes, 3 no, 1 could not be told. */
import { type Difference, kinds } from '../../journeys/compare.ts'
import { driftOf, type VerifyResult } from '../../journeys/verify.ts'
import type { Outbox } from '../../outbox.ts'
import { type Command, type Context, flagOf, numberOf } from '../command.ts'
import { decisionOf, follow, journeyOptions, withIndex } from '../journey-command.ts'

const driftCode = 3
const trusting = 'the hashes stored in the index were believed; documents changed there by hand were not looked for.'

export const command: Command = {
  name: 'verify',
  summary: 'compare a search index with its source: missing, orphaned, stale',
  usage: 'hermod verify INDEX [--repair] [--sample N] [--fast]',
  examples: [
    'hermod verify documents',
    'hermod verify documents --sample 1000 --json',
    'hermod verify documents --repair',
    'hermod verify documents --fast',
    'hermod verify documents --quiet || page-somebody',
  ],
  options: {
    ...journeyOptions,
    repair: { type: 'boolean', says: 'make the subscription read what differs again' },
    sample: { type: 'string', value: 'N', says: 'only so many rows, picked at random' },
    fast: { type: 'boolean', says: 'believe the hashes stored in the index: changes made there by hand are not seen' },
  },
  notes: [
    'Compares what a search would show. With --fast only the hash that was stored with each document is read: quicker, but a document that somebody changed in the index is not found.',
    'Exits 0 without drift (or when all of it was repaired), 3 with drift, 1 when it could not be told.',
    'An edit on its way is no drift: what differs is looked at again after the subscription has passed it. See docs/operations/verify.md.',
  ],
  run: (context) => withIndex(context, (outbox, index) => compare(context, outbox, index)),
}

async function compare(context: Context, outbox: Outbox, index: string): Promise<number> {
  const { terminal } = context
  const sample = numberOf(context, 'sample')
  const plan = {
    repair: flagOf(context, 'repair'),
    fast: flagOf(context, 'fast'),
    ...(sample !== undefined && { sample }),
  }
  const started = await outbox.verify(index, plan, decisionOf(context))
  const { journey, code } = await follow(context, outbox, started, { here: true })
  if (code !== 0) {
    if (terminal.json) terminal.document(journey)
    return code
  }
  const result = journey.result as unknown as VerifyResult
  if (terminal.json) terminal.document(result)
  else print(context, result)
  return driftOf(result) === 0 ? 0 : driftCode
}

function print({ terminal }: Context, result: VerifyResult): void {
  const { source, indexed, repaired, moving, refused } = result
  const facts = { source, indexed, ...pick(result), repaired, moving, refused }
  for (const [name, value] of Object.entries(facts)) terminal.data(`${name}\t${value}`)
  for (const kind of kinds) {
    for (const id of result.examples[kind]) terminal.data(`${kind}: ${id}`)
  }
  if (driftOf(result) === 0) terminal.say(result.fast ? 'No drift by the stored hashes.' : 'No drift.')
  else terminal.say(`hermod verify ${result.index} --repair reads these rows again.`)
  if (result.fast) terminal.say(`--fast: ${trusting}`)
  if (moving > 0) terminal.say(`${moving} changed at every look; they are no drift.`)
}

function pick(result: VerifyResult): Record<Difference, number> {
  const { missing, orphaned, stale } = result
  return { missing, orphaned, stale }
}
