/**
 * Asks for the outcomes of parked calls: all handles of a subscription in this worker in one call, every
 * 20 ms at first, every half second while nothing changes. There is no limit on how long a task may take.
 */
import { OVERDUE, unlessOverdue } from '../flow/call.ts'
import type { Trouble } from '../flow/hold.ts'
import { normalisePolled, type Outcome, outcomeOfError } from '../sinks/sink.ts'
import { notify } from '../telemetry.ts'
import { Breaker } from './breaker.ts'
import type { Station, Tasks, Waiting } from './station.ts'
import { Wake } from './wake.ts'

const soonMs = 20
const lateMs = 500
const failedMs = 5_000

type Waiter = (outcome: Outcome | undefined) => void

export class Poller implements Tasks {
  readonly #station: Station
  readonly #waiting = new Map<string, Set<Waiter>>()
  readonly #wake = new Wake()
  #running = false
  #failingSinceMs: number | undefined

  constructor(station: Station) {
    this.#station = station
    station.abort.addEventListener('abort', () => this.#endAll(), { once: true })
  }

  /** Several may wait for one handle: every lane of a resumed call does. */
  wait(handle: string): Waiting {
    let end: Waiter = () => {}
    const ended = new Promise<Outcome | undefined>((resolve) => {
      end = resolve
    })
    const forget = () => this.#end(handle, undefined, [end])
    if (this.#station.abort.aborted) end(undefined)
    else this.#add(handle, end)
    return { ended, forget }
  }

  #add(handle: string, end: Waiter): void {
    this.#waiting.set(handle, (this.#waiting.get(handle) ?? new Set()).add(end))
    this.#wake.wake()
    if (!this.#running) this.#run()
  }

  #end(handle: string, outcome: Outcome | undefined, waiters: Iterable<Waiter>): void {
    const all = this.#waiting.get(handle)
    for (const end of [...waiters]) {
      end(outcome)
      all?.delete(end)
    }
    if (all?.size === 0) this.#waiting.delete(handle)
  }

  #endAll(): void {
    for (const [handle, waiters] of [...this.#waiting]) this.#end(handle, undefined, waiters)
    this.#wake.wake()
  }

  /** Polls while somebody waits. */
  async #run(): Promise<void> {
    this.#running = true
    let pauseMs = soonMs
    while (this.#waiting.size > 0) {
      const seen = this.#wake.count
      await this.#wake.wait(pauseMs, seen)
      if (this.#wake.count !== seen) {
        // A new handle: waits a little, so that handles that come together are asked for together.
        pauseMs = soonMs
        await this.#wake.wait(pauseMs)
      }
      const changed = await this.#poll().catch((error) => this.#failed(error))
      if (changed === undefined) pauseMs = Math.min(failedMs, Math.max(2 * soonMs, pauseMs * 2))
      else pauseMs = changed ? soonMs : Math.min(lateMs, pauseMs * 2)
    }
    this.#running = false
  }

  /** True: a task has ended. */
  async #poll(): Promise<boolean> {
    const { sink, name, callMs } = this.#station.subscription
    const handles = [...this.#waiting.keys()]
    if (handles.length === 0 || sink.poll === undefined) return false
    const signal = AbortSignal.any([this.#station.abort, AbortSignal.timeout(callMs)])
    const asked = Promise.resolve(sink.poll(handles, { signal, subscription: name }))
    const given = await unlessOverdue(asked, signal)
    if (given === OVERDUE) throw new Error(`poll() did not end within ${callMs} ms`)
    const outcomes = normalisePolled(given, handles)
    this.#failingSinceMs = undefined
    for (const [index, handle] of handles.entries()) {
      const outcome = outcomes[index]
      if (outcome !== undefined) this.#end(handle, outcome, this.#waiting.get(handle) ?? [])
    }
    return outcomes.some((outcome) => outcome !== undefined)
  }

  /** A failed poll says nothing about the tasks, so nothing is spent. Only if it lasts, the breaker opens. */
  async #failed(error: unknown): Promise<undefined> {
    const { listener, subscription, abort } = this.#station
    if (abort.aborted) return
    const now = performance.now()
    if (this.#failingSinceMs === undefined) {
      notify(listener, 'error', { during: 'poll', error, subscription: subscription.name })
      this.#failingSinceMs = now
    }
    if (now - this.#failingSinceMs < subscription.callMs) return
    this.#failingSinceMs = now
    await new Breaker(this.#station).troubled(troubleOf(error)).catch(() => {})
  }
}

function troubleOf(error: unknown): Trouble {
  const { outcome, message, afterMs = 0 } = outcomeOfError(error)
  const cause = outcome === 'misconfigured' ? outcome : 'unavailable'
  return { cause, says: `poll(): ${message ?? outcome}`, afterMs }
}
