/**
 * Follows a journey on the terminal until it ends: a bar with rate and estimate, the phase it is in
 * and what it waits for. Ctrl-C stops looking, not the journey.
 */
import type { Journey } from '../journeys/journey.ts'
import type { Outbox } from '../outbox.ts'
import type { Context } from './command.ts'
import { progressBar } from './progress-bar.ts'
import { listenForSignals } from './signals.ts'

/** Workers have this long to take the journey; then this process runs it itself. */
const workersFirstMs = 2_000

export interface FollowOptions {
  /** Run it in this process at once; otherwise only when no worker takes it. */
  readonly here: boolean
}

export interface Followed {
  readonly journey: Journey
  readonly interrupted: boolean
}

export async function followJourney(
  context: Context,
  outbox: Pick<Outbox, 'journeys'>,
  id: bigint,
  { here }: FollowOptions,
): Promise<Followed> {
  const { terminal } = context
  const signals = listenForSignals(terminal, 'Leaving now; the journey goes on in the workers.')
  const stop = new AbortController()
  let interrupted = false
  void signals.first.then(() => {
    interrupted = true
    stop.abort()
  })
  const shown = new Shown(context)
  try {
    const watch = { signal: stop.signal, onProgress: (journey: Journey) => shown.show(journey) }
    if (!here) await takenByWorker(outbox, id, stop.signal)
    return { journey: await outbox.journeys.run(id, watch), interrupted }
  } finally {
    shown.end()
    signals.end()
  }
}

async function takenByWorker({ journeys }: Pick<Outbox, 'journeys'>, id: bigint, signal: AbortSignal): Promise<void> {
  const untilMs = performance.now() + workersFirstMs
  while (performance.now() < untilMs && !signal.aborted) {
    if ((await journeys.show(id))?.state !== 'queued') return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

class Shown {
  readonly #context: Context
  #bar: ReturnType<typeof progressBar> | undefined
  #phase: string | null = null
  #waiting: unknown

  constructor(context: Context) {
    this.#context = context
  }

  show({ kind, subject, phase, progress }: Journey): void {
    const { terminal, values } = this.#context
    if (phase !== this.#phase) {
      this.end()
      if (phase !== null) terminal.say(`${kind} ${subject}: ${phase}`)
      const wanted = !terminal.json && values.quiet !== true
      this.#bar = progressBar(`${phase}`, { wanted })
    }
    this.#phase = phase
    if (progress.waiting != null && progress.waiting !== this.#waiting) {
      this.#bar?.end()
      terminal.say(`waiting: ${progress.waiting}`)
    }
    this.#waiting = progress.waiting
    const { done, total } = progress
    const counted = phase === 'load' || phase === 'compare' || phase === 'send'
    if (counted && done !== undefined && total !== undefined) {
      this.#bar?.show({ done, total: Math.max(done, total) })
    }
  }

  end(): void {
    this.#bar?.end()
    this.#bar = undefined
  }
}

/** `1h`, `30m`, `90s`, `2d`; undefined when it is none. */
export function durationMs(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,6})(ms|s|m|h|d)$/.exec(text) ?? []
  if (number === undefined || unit === undefined) return undefined
  return Number(number) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as 's']
}
