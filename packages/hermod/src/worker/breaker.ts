/**
 * The breaker of a subscription, as one claim loop sees it. Its state is in the subscription's row:
 * while it is open nothing is sent but single probes, one at a time over all workers.
 *
 *   closed ──troubled──▶ open ──mayProbe (one wins)──▶ probing ──recovered──▶ closed
 *                          ▲                              │
 *                          └──────────troubled────────────┘
 */
import { randomUUID } from 'node:crypto'
import { hold, probe, recover, type Trouble, unprobe } from '../flow/hold.ts'
import { notify } from '../telemetry.ts'
import type { Station } from './station.ts'

/** Longer than a probe can last: its call, the wait for a sink that ignores its deadline, the settle. */
const probeMarginMs = 5_000

export class Breaker {
  readonly #station: Station
  readonly #prober = randomUUID()
  #probing = false

  constructor(station: Station) {
    this.#station = station
  }

  /** A probe of this loop is under way. */
  get probing(): boolean {
    return this.#probing
  }

  /** False: somebody else is probing, or it is too early. */
  async mayProbe(): Promise<boolean> {
    const { db, subscription } = this.#station
    const rightMs = subscription.callMs + probeMarginMs
    this.#probing = await probe(db, subscription.name, this.#prober, rightMs)
    if (this.#probing) this.#tell('probing')
    else await this.#station.refresh()
    return this.#probing
  }

  async troubled(trouble: Trouble): Promise<void> {
    const { db, subscription } = this.#station
    await hold(db, subscription.name, trouble, this.#probing ? this.#prober : null)
    this.#probing = false
    this.#tell('open', trouble.says)
    await this.#station.refresh()
  }

  /** The destination accepted something. */
  async passed(): Promise<void> {
    if (!this.#probing) return
    this.#probing = false
    const { db, subscription } = this.#station
    if (await recover(db, subscription.name)) this.#tell('closed')
    await this.#station.refresh()
  }

  /** The probe showed nothing: somebody else may probe at once. */
  async unused(): Promise<void> {
    if (!this.#probing) return
    this.#probing = false
    await unprobe(this.#station.db, this.#station.subscription.name, this.#prober)
  }

  /** There is no event to probe with: asks the sink itself, if it has `probe`. */
  async askSink(): Promise<void> {
    const { sink, ledger, name, callMs } = this.#station.subscription
    if (sink.probe === undefined && !ledger) return
    if (!(await this.mayProbe())) return
    try {
      const signal = AbortSignal.any([this.#station.abort, AbortSignal.timeout(callMs)])
      await sink.probe?.({ signal, subscription: name })
      await this.passed()
    } catch (error) {
      const says = error instanceof Error ? error.message : String(error)
      await this.troubled({ cause: 'unavailable', says, afterMs: 0 })
    }
  }

  #tell(state: 'open' | 'probing' | 'closed', reason?: string): void {
    const { listener, subscription } = this.#station
    notify(listener, 'breaker', { subscription: subscription.name, state, reason })
  }
}
