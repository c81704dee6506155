/**
 * The conformance suite for sinks: one list of named cases, run by whatever `test(name, fn)` you
 * have (Vitest, node:test, Jest). A case that needs the destination to fail asks you for a hook.
 */
import { HermodError } from '../errors.ts'
import { capabilitiesOf, type Sink } from '../sinks/sink.ts'
import { type ExerciseSinkOptions, sinkCases } from './sink-cases.ts'

export type { SampleEvent } from './sink-call.ts'
export type { Break, ExerciseSinkOptions, Repair } from './sink-cases.ts'

export interface Exercise {
  /** Names of the cases handed to `test`. */
  readonly cases: readonly string[]
  /** Cases left out, each with the sentence that says why. */
  readonly leftOut: readonly { readonly name: string; readonly why: string }[]
}

const decisions = ['bad', 'oversize', 'down', 'hang', 'credentials', 'throttle'] as const

/** `makeSink` gives a new sink on a destination that is healthy; the suite closes it. */
export function exerciseSink(makeSink: () => Sink | Promise<Sink>, options: ExerciseSinkOptions): Exercise {
  refuseUndecided(options)
  const cases: string[] = []
  const leftOut: { name: string; why: string }[] = []
  for (const { name, needs, run } of sinkCases) {
    const why = needs === undefined ? undefined : options[needs]
    if (typeof why === 'string') {
      leftOut.push({ name, why })
      continue
    }
    cases.push(name)
    options.test(name, () => withSink(makeSink, (sink) => run(sink, options)))
  }
  return { cases, leftOut }
}

/** Nothing is left out silently: each hook is given, or a sentence that says why it is not. */
function refuseUndecided(options: ExerciseSinkOptions): void {
  const missing = decisions.filter((name) => options[name] === undefined)
  if (typeof options.test !== 'function') missing.unshift('test' as never)
  if (missing.length === 0) return
  throw new HermodError(
    'HMD_OPTION_INVALID',
    `exerciseSink: ${missing.join(', ')} missing; give it, or a sentence that says why it does not apply`,
    { field: missing[0] },
  )
}

async function withSink(makeSink: () => Sink | Promise<Sink>, run: (sink: Sink) => Promise<void>): Promise<void> {
  const sink = await makeSink()
  capabilitiesOf(sink)
  try {
    await run(sink)
  } finally {
    await sink.close?.()
  }
}
