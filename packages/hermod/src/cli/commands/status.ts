/** `hermod status`: one screen. Exit 0 when all is well, 1 when a person should act. */
import { duration } from '../../desk/health.ts'
import { type Stats, type SubscriptionStats, stats } from '../../desk/stats.ts'
import { assertMigrated } from '../../migrate.ts'
import type { Command } from '../command.ts'
import { withDatabase } from '../connect.ts'
import type { Terminal } from '../terminal.ts'

export const command: Command = {
  name: 'status',
  summary: 'is something broken that I need to act on?',
  usage: 'hermod status [--json]',
  examples: ['hermod status', 'hermod status --json', 'hermod status --quiet || page-somebody'],
  notes: ['Exits 0 when all is well, 1 when a person should act. – means: could not be counted in time.'],
  run: (context) =>
    withDatabase(context, async (db) => {
      await assertMigrated(db)
      const found = await stats(db)
      const needs = whatNeedsYou(found)
      if (context.terminal.json) context.terminal.document({ ...found, needs })
      else print(found, needs, context.terminal)
      return needs.length === 0 ? 0 : 1
    }),
}

export interface Need {
  readonly subscription: string | null
  readonly says: string
  readonly next: string
}

/** At most seven, each with its cause and the next command. */
export function whatNeedsYou({ subscriptions, workers, unnumbered }: Stats): Need[] {
  const needs: Need[] = []
  if (workers === 0 && (unnumbered ?? 0) > 0) {
    needs.push({
      subscription: null,
      says: `no worker runs; ${unnumbered} events wait`,
      next: 'hermod work',
    })
  }
  for (const one of subscriptions) needs.push(...needsOf(one))
  return needs.slice(0, 7)
}

function needsOf({ name, health, dead, unknown }: SubscriptionStats): Need[] {
  const needs: Need[] = []
  if (['behind', 'unavailable', 'misconfigured', 'disabled'].includes(health.word)) {
    needs.push({
      subscription: name,
      says: `${name} is ${health.word}: ${health.why}`,
      next: 'hermod doctor',
    })
  }
  if (dead !== null && dead > 0) {
    const next = `hermod dead groups --subscription ${name}`
    needs.push({ subscription: name, says: `${name} has ${dead} dead ${dead === 1 ? 'letter' : 'letters'}`, next })
  }
  if (unknown !== null && unknown > 0) {
    const next = `hermod dead list --subscription ${name}`
    needs.push({
      subscription: name,
      says: `${name} has ${unknown} ${unknown === 1 ? 'delivery' : 'deliveries'} of unknown outcome`,
      next,
    })
  }
  return needs
}

function print(found: Stats, needs: readonly Need[], terminal: Terminal): void {
  const { subscriptions, workers, head } = found
  const good =
    subscriptions.length === 0 ? 'No subscription yet' : `All ${subscriptions.length} subscriptions are keeping up`
  terminal.data(
    needs.length === 0 ? terminal.paint('green', `${good}.`) : terminal.paint('red', needsYou(needs.length)),
  )
  for (const { says, next } of needs) terminal.data(`  ${says}\n    ${terminal.paint('dim', next)}`)
  if (subscriptions.length > 0) {
    terminal.data('')
    const head = [
      'subscription',
      'health',
      'oldest',
      'pending',
      'processing',
      'retrying',
      'blocked',
      'dead',
      'unknown',
      'per s',
    ]
    terminal.table(head, subscriptions.map(rowOf))
  }
  terminal.data(`\n${workers} ${workers === 1 ? 'worker' : 'workers'}, head of the log ${head}`)
  for (const { name, reasons } of subscriptions) {
    for (const [part, why] of Object.entries(reasons)) terminal.say(`${name}: ${part} ${why}`)
  }
}

function needsYou(count: number): string {
  return count === 1 ? 'One thing needs you:' : `${count} things need you:`
}

function rowOf(one: SubscriptionStats) {
  const age = one.oldestPendingAgeMs === null ? '–' : duration(one.oldestPendingAgeMs)
  const pending = one.pendingEstimated && one.pending !== null ? `~${one.pending}` : one.pending
  return [
    ...[one.name, one.health.word, age, pending, one.processing],
    ...[one.retrying, one.blocked, one.dead, one.unknown, one.rate],
  ]
}
