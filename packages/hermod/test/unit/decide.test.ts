// What a claim loop does next, as a table: a loop at rest with nothing to do, and what each change of its
// view makes of it. Further down the rows that show which of two reasons wins.

import { describe, expect, it } from 'vitest'
import { type Action, decide, mayReadAhead, type View } from '../../src/worker/decide.ts'

const now = 1_000
const never = Number.POSITIVE_INFINITY

/** Four lanes held, all of them read, nothing to do until the next poll. */
const resting: View = {
  stopping: false,
  doubt: false,
  returned: false,
  mode: 'live',
  outdated: false,
  lanes: 4,
  free: 4,
  balanceAtMs: never,
  ahead: false,
  breaker: undefined,
  lookAtMs: now + 500,
  called: false,
  replayAtMs: never,
  againAtMs: never,
  rateAtMs: now,
  idle: false,
  pollMs: 1_000,
}

const rest = (ms: number): Action => ({ do: 'rest', ms })
const release = (lanes: 'all' | 'free'): Action => ({ do: 'release', lanes })
const none: Partial<View> = { lanes: 0, free: 0, balanceAtMs: now + 40 }
const open = (probeAtMs: number, canProbe = true): Partial<View> => ({ breaker: { probeAtMs, canProbe } })

const table: readonly [when: string, change: Partial<View>, action: Action][] = [
  ['nothing has changed', {}, rest(500)],
  ['a step has numbered something', { called: true }, { do: 'round' }],
  ['it is time to look', { lookAtMs: now }, { do: 'round' }],
  ['the look is farther away than a poll', { lookAtMs: now + 60_000 }, rest(1_000)],
  ['the rate limit lets nothing go', { called: true, rateAtMs: now + 30 }, rest(30)],
  ['the rate limit is longer than the look', { lookAtMs: now + 10, rateAtMs: now + 30 }, rest(30)],
  ['a batch was read ahead', { ahead: true }, { do: 'round' }],
  ['nothing was found for a while', { idle: true }, release('free')],
  ['no lane is held', { lanes: 0, free: 0, balanceAtMs: now + 40 }, rest(40)],
  ['lanes may be taken', { balanceAtMs: now }, { do: 'balance' }],
  ['no lane is held, and nothing was found for a while', { ...none, idle: true }, { do: 'sleep' }],
  ['it is paused, and nothing was found for a while', { ...none, mode: 'paused', idle: true }, { do: 'sleep' }],
  [
    'its definition is too old, and nothing was found for a while',
    { ...none, outdated: true, idle: true },
    { do: 'sleep' },
  ],
  ['it stops', { stopping: true }, { do: 'end' }],
  ['an answer was lost', { doubt: true }, { do: 'ask' }],
  ['a task has ended', { returned: true }, { do: 'land' }],
  ['all lanes wait for tasks', { free: 0, called: true }, rest(1_000)],
  ['it is paused', { mode: 'paused' }, release('free')],
  ['it is paused, and all lanes wait for tasks', { mode: 'paused', free: 0 }, rest(1_000)],
  ['its definition is too old', { outdated: true }, release('all')],
  ['its definition is too old, and all lanes wait for tasks', { outdated: true, free: 0 }, release('all')],
  ['its definition is too old, and all is given back', { outdated: true, lanes: 0, free: 0 }, rest(1_000)],
  ['the breaker opened', open(now + 200), rest(200)],
  ['a probe may go', open(now), { do: 'probe' }],
  ['there is nothing to probe with', open(now, false), rest(1_000)],
  ['a slice of a replay may go', { replayAtMs: now }, { do: 'replay' }],
  ['a slice of a replay may go later', { replayAtMs: now + 7 }, rest(7)],
  ['a late write may have landed', { againAtMs: now }, { do: 'again' }],
  ['a late write may land', { againAtMs: now + 9 }, rest(9)],
]

const precedence: readonly [what: string, change: Partial<View>, action: Action][] = [
  ['a stop before a doubt', { stopping: true, doubt: true }, { do: 'end' }],
  ['a doubt before a task that has ended', { doubt: true, returned: true }, { do: 'ask' }],
  ['a doubt before a pause', { doubt: true, mode: 'paused' }, { do: 'ask' }],
  ['a task that has ended before a pause', { returned: true, mode: 'paused' }, { do: 'land' }],
  ['a pause before what was read ahead', { mode: 'paused', ahead: true }, release('free')],
  ['what was read ahead before lanes change hands', { ahead: true, balanceAtMs: now }, { do: 'round' }],
  ['what was read ahead is dropped if all lanes were lost', { ...none, ahead: true }, { do: 'forget' }],
  ['a breaker before what was read ahead', { ...open(now), ahead: true }, { do: 'forget' }],
  ['lanes before a probe', { ...open(now), balanceAtMs: now }, { do: 'balance' }],
  ['a breaker before news', { ...open(now + 50), called: true }, rest(50)],
  ['a breaker before a replay', { ...open(now + 50), replayAtMs: now }, rest(50)],
  ['a breaker keeps idle lanes', { ...open(now + 50), idle: true }, rest(50)],
  ['a replay slice before news: it goes on beside them', { replayAtMs: now, called: true }, { do: 'replay' }],
  ['a second send before news: nothing is in flight now', { againAtMs: now, called: true }, { do: 'again' }],
  ['lanes before a sleep', { ...none, idle: true, balanceAtMs: now }, { do: 'balance' }],
  [
    'a sleep before a breaker: without lanes there is nothing to probe with',
    { ...none, ...open(now), idle: true },
    { do: 'sleep' },
  ],
  ['a doubt before a sleep', { ...none, idle: true, doubt: true }, { do: 'ask' }],
  ['a poll before idle lanes are given back', { idle: true, lookAtMs: now }, { do: 'round' }],
]

/** What would come before the next round: then its batch is not read ahead. */
const first: readonly [what: string, change: Partial<View>][] = [
  ['a stop', { stopping: true }],
  ['a doubt', { doubt: true }],
  ['a task that has ended', { returned: true }],
  ['a pause', { mode: 'paused' }],
  ['a newer revision', { outdated: true }],
  ['lanes that change hands', { balanceAtMs: now }],
  ['a breaker that is open', open(now + 50)],
  ['a slice of a replay: a backlog that lasts leaves it its share', { replayAtMs: now }],
  ['newest states that have to be sent again', { againAtMs: now }],
]

describe('mayReadAhead', () => {
  it.each(first)('not before %s', (_, change) => {
    expect(mayReadAhead({ ...resting, ...change }, now)).toBe(false)
  })
  it('when nothing else is due', () => {
    expect(mayReadAhead(resting, now)).toBe(true)
    expect(mayReadAhead({ ...resting, called: true, replayAtMs: now + 1, againAtMs: now + 1 }, now)).toBe(true)
  })
})

describe('decide', () => {
  it.each(table)('%s', (_, change, action) => {
    expect(decide({ ...resting, ...change }, now)).toEqual(action)
  })
  it.each(precedence)('%s', (_, change, action) => {
    expect(decide({ ...resting, ...change }, now)).toEqual(action)
  })
  it('never rests for no time: a loop cannot spin', () => {
    for (const at of [now, now - 1, 0, Number.NEGATIVE_INFINITY]) {
      const action = decide({ ...resting, free: 0, replayAtMs: never, againAtMs: at, lookAtMs: at }, now)
      expect(action).toEqual(rest(1_000))
    }
  })
})
