// The conformance suite itself: a good sink passes every case, and each way of being a bad sink is
// caught by the case that is about it.

import { describe, expect, it, test } from 'vitest'
import {
  type DeliverResult,
  delivered,
  misconfigured,
  type Outcome,
  rejected,
  retry,
  type Sink,
  unavailable,
} from '../../src/sinks/sink.ts'
import { type ExerciseSinkOptions, exerciseSink, memorySink } from '../../src/testing/index.ts'

const bad = { aggregate: ['sample', 'bad'] as const }
const large = { payload: { text: 'x'.repeat(5_000) } }

/** A memory sink with a switch for each way a destination can fail. */
function destination(ledger = false) {
  const ids: string[] = []
  const accepted = () => ids
  let broken: 'down' | 'credentials' | 'throttle' | 'hang' | undefined
  const inner = memorySink({
    capabilities: { ledger },
    answer: (event) => answers[broken ?? of(event)](),
  })
  const of = (event: { aggregateId: string; bytes: number }) =>
    event.aggregateId === 'bad' ? 'bad' : event.bytes > 4_000 ? 'large' : 'good'
  const answers = {
    good: delivered,
    bad: () => rejected({ message: 'no such customer' }),
    large: () => rejected({ status: 413 }),
    down: () => unavailable({ code: 'ECONNREFUSED' }),
    credentials: () => misconfigured({ status: 401 }),
    throttle: () => unavailable({ status: 429, afterMs: 1_000 }),
    hang: delivered,
  }
  const sink: Sink = {
    ...inner,
    async deliver(events, context) {
      if (broken === 'hang') await once(context.signal)
      const before = inner.accepted.length
      const outcomes = await inner.deliver(events, context)
      ids.push(...inner.accepted.slice(before).map(({ aggregateId }) => aggregateId))
      return outcomes
    },
    async probe() {
      if (broken === 'down') throw new Error('down')
    },
  }
  const breaking = (how: typeof broken) => () => {
    broken = how
    return () => {
      broken = undefined
    }
  }
  const hooks = {
    down: breaking('down'),
    hang: breaking('hang'),
    credentials: breaking('credentials'),
    throttle: breaking('throttle'),
  }
  return { sink, accepted, bad, oversize: large, ...hooks }
}

const once = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

for (const ledger of [false, true]) {
  describe(`the memory sink${ledger ? ' as a ledger' : ''}`, () => {
    const { sink, ...hooks } = destination(ledger)
    exerciseSink(() => sink, { test, ...hooks })
  })
}

/** The same destination, which takes good calls as tasks and tells at the second question. */
function parking() {
  const { sink, down, ...hooks } = destination()
  const tasks = new Map<string, { outcomes: readonly Outcome[]; polls: number }>()
  let unreachable = false
  const parked: Sink = {
    ...sink,
    async deliver(events, context) {
      const outcomes = listed(await sink.deliver(events, context)) ?? []
      if (events.length === 0 || outcomes.some(({ outcome }) => outcome !== 'delivered')) return outcomes
      const handle = `task ${tasks.size}`
      tasks.set(handle, { outcomes, polls: 0 })
      return { parked: handle }
    },
    async poll(handles) {
      if (unreachable) throw new Error('ECONNREFUSED')
      return handles.map((handle) => {
        const task = tasks.get(handle)
        return task !== undefined && task.polls++ > 0 ? task.outcomes[0] : undefined
      })
    },
  }
  const stop = () => {
    const repair = down()
    unreachable = true
    return () => {
      unreachable = false
      repair()
    }
  }
  return { sink: parked, down: stop, ...hooks }
}

describe('a sink that parks', () => {
  const { sink, ...hooks } = parking()
  exerciseSink(() => sink, { test, ...hooks })
})

/** Runs the suite against a sink with one fault; the names of the cases that failed. */
async function failures(
  change: (good: Sink) => Partial<Sink>,
  more: Partial<ExerciseSinkOptions> = {},
  ledger = false,
  make: typeof destination = destination,
): Promise<string[]> {
  const { sink, ...hooks } = make(ledger)
  const runs: { name: string; run: () => Promise<void> }[] = []
  const collect = (name: string, run: () => Promise<void>) => runs.push({ name, run })
  exerciseSink(() => ({ ...sink, ...change(sink) }), { test: collect, ...hooks, ...more })
  const failed: string[] = []
  for (const { name, run } of runs) await run().catch(() => failed.push(name))
  return failed
}

const listed = (result: DeliverResult) => result as readonly Outcome[] | undefined

const throwing = (error: Error) => async () => {
  throw error
}

describe('a bad sink is caught', () => {
  it('that returns too few outcomes', async () => {
    const failed = await failures(({ deliver }) => ({
      deliver: async (...args) => listed(await deliver(...args))?.slice(1),
    }))
    expect(failed).toContain('a batch is delivered, one outcome per event')
  })

  it('that rejects a whole batch because of one event', async () => {
    const failed = await failures(({ deliver }) => ({
      async deliver(events, context) {
        const outcomes = listed(await deliver(events, context))
        const worst = outcomes?.find(({ outcome }) => outcome === 'rejected')
        return worst === undefined ? outcomes : events.map(() => worst)
      },
    }))
    expect(failed).toContain('a bad event in a batch fails alone')
  })

  it('that calls an outage a reason to retry, or credentials a rejection', async () => {
    const failed = await failures(({ deliver }) => ({
      deliver: async (...args) =>
        listed(await deliver(...args))?.map((one) =>
          one.outcome === 'unavailable' ? retry() : one.outcome === 'misconfigured' ? rejected() : one,
        ),
    }))
    expect(failed).toEqual([
      'a destination that is down is unavailable, and nothing is lost',
      'wrong credentials are misconfigured, and nothing is lost',
      'a destination that asks for a pause is unavailable until then',
    ])
  })

  it('that does not listen to its signal', async () => {
    let stuck = false
    const hang = () => {
      stuck = true
      return () => {
        stuck = false
      }
    }
    const failed = await failures(
      ({ deliver }) => ({
        deliver: (...args) => (stuck ? new Promise(() => {}) : deliver(...args)),
      }),
      { hang },
    )
    expect(failed).toEqual(['a call told to stop ends promptly'])
  })

  it('that tells a secret, or a payload', async () => {
    const says = (message: string) => ({ deliver: throwing(new Error(message)) })
    expect(await failures(() => says('401 for key-123'), { secrets: ['key-123'] })).toContain(
      'a single event is delivered',
    )
    expect(await failures(() => says('cannot send hermod-sample-payload'))).toContain('a bad event alone is rejected')
  })

  it('that parks and cannot be asked, or says what it cannot know', async () => {
    const parks = (change: (good: Sink) => Partial<Sink>) => failures(change, {}, false, parking)
    const told = 'parked calls are told together, and by any process'
    const lost = 'a poll that cannot reach the destination tells nothing, and a later one does'
    expect(await parks(() => ({ poll: undefined as never }))).toContain('a single event is delivered')
    expect(await parks(() => ({ poll: async () => [] }))).toContain(told)
    expect(await parks(() => ({ deliver: async () => ({ parked: 'x'.repeat(2_001) }) }))).toContain(told)
    const guess = ({ poll }: Sink): Partial<Sink> => ({
      poll: async (handles, context) =>
        (await poll?.(handles, context).catch(() => undefined)) ?? handles.map(() => unavailable()),
    })
    expect(await parks(guess)).toEqual([lost])
  })

  it('that sends before it has recorded sending', async () => {
    const failed = await failures(
      ({ deliver }) => ({
        async deliver(events, context) {
          const outcomes = await deliver(events, { ...context, sending: async () => {} })
          for (const event of events) await context.sending(event)
          return outcomes
        },
      }),
      {},
      true,
    )
    expect(failed).toEqual([
      'a ledger sink records sending before the effect',
      'a ledger sink sends nothing it may not record',
    ])
  })
})

describe('what is left out', () => {
  it('is refused without a sentence', () => {
    const { sink, hang: _, ...hooks } = destination()
    const run = () => exerciseSink(() => sink, { test, ...hooks } as never)
    expect(run).toThrow('exerciseSink: hang missing')
  })

  it('is reported with its sentence', () => {
    const { sink, ...hooks } = destination()
    const names: string[] = []
    const { cases, leftOut } = exerciseSink(() => sink, {
      ...hooks,
      test: (name) => names.push(name),
      hang: 'it is in memory',
    })
    expect(leftOut).toEqual([{ name: 'a call told to stop ends promptly', why: 'it is in memory' }])
    expect(cases).toEqual(names)
  })
})
