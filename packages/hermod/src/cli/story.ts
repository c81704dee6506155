/** The story of one event, for people. */
import type { EventStory } from '../desk/show.ts'
import { type Terminal, toJson } from './terminal.ts'

export function printStory(story: EventStory, terminal: Terminal): void {
  const { type, aggregate, position, id, key, createdAt, sequencedAt } = story
  terminal.data(`${terminal.paint('bold', type ?? 'event')}  ${aggregate.join('/')}`)
  terminal.data(`position ${position ?? '–'}, id ${id}${key === null ? '' : `, key ${key}`}`)
  terminal.data(`emitted ${iso(createdAt)}, numbered ${iso(sequencedAt)}`)
  terminal.data('')
  terminal.table(
    ['subscription', 'state', 'attempts', 'next attempt', 'why'],
    story.states.map((state) => [
      ...[state.subscription, state.state, state.attempts, iso(state.nextAttemptAt)],
      state.blockedBy === null
        ? (state.reason ?? state.error ?? state.code)
        : `blocked behind position ${state.blockedBy}`,
    ]),
  )
  if (story.attempts.length > 0) {
    terminal.data('\nattempts')
    terminal.table(
      ['started', 'subscription', 'outcome', 'ms', 'worker', 'error'],
      story.attempts.map((one) => [
        ...[iso(one.startedAt), one.subscription, one.own ? one.outcome : `${one.outcome} (call)`],
        ...[one.durationMs, one.worker, one.error ?? one.code],
      ]),
    )
  }
  if (story.audit.length > 0) {
    terminal.data('\ndecisions')
    terminal.table(
      ['at', 'actor', 'action', 'subscription', 'reason'],
      story.audit.map((row) => [iso(row.at), row.actor, row.action, row.subscription, row.reason]),
    )
  }
  if (story.neighbours.length > 0) {
    const near = story.neighbours.map((one) => `${one.position} ${one.type}`)
    terminal.data(`\nsame aggregate: ${near.join(', ')}`)
  }
  if ('payload' in story) terminal.data(`\npayload\n${toJson(story.payload)}`)
}

function iso(at: Date | null): string {
  return at === null ? '–' : at.toISOString()
}
