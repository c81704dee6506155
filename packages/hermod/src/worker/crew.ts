/**
 * A subscription and the claim loops that serve it in one worker. Retiring lets the call in flight end, settles it
 * and gives the lanes back.
 */
import type { News } from '../flow/sequence.ts'
import type { ResolvedSubscription } from '../options.ts'
import { notify } from '../telemetry.ts'
import { Loop } from './loop.ts'
import type { Station } from './station.ts'

export class Crew {
  readonly subscription: ResolvedSubscription
  readonly station: Station
  readonly #abort: AbortController
  readonly #loops: readonly Loop[]
  #running: Promise<unknown> | undefined
  #retired: Promise<void> | undefined

  /** `count`: how many claim loops. `abort` is the station's: a retired crew has no more time than its grace. */
  constructor(station: Station, count: number, abort: AbortController) {
    this.subscription = station.subscription
    this.station = station
    this.#abort = abort
    const share = (index: number) => {
      const { lanes, workers } = station.state()
      const mine = Math.ceil(lanes / workers)
      return Math.floor(mine / count) + (index < mine % count ? 1 : 0)
    }
    this.#loops = Array.from({ length: count }, (_, index) => new Loop(station, () => share(index)))
  }

  /** For runOnce, which carries them on by itself. */
  get loops(): readonly Loop[] {
    return this.#loops
  }

  run(): void {
    this.#running ??= Promise.all(this.#loops.map((loop) => loop.run().catch((error) => this.#tell(error))))
  }

  /** Something was numbered; undefined: it may be anything, anywhere. What it does not listen to is passed at its next poll. */
  hear(news: News | undefined): void {
    if (news !== undefined && !this.#listensTo(news.kinds)) return
    const lanes = this.subscription.lanes === 1 ? [0] : news?.lanes
    const held = new Set(this.#loops.flatMap(({ lanes }) => lanes))
    const free = news === undefined || (lanes ?? []).some((lane) => !held.has(lane))
    for (const loop of this.#loops) loop.hear(news && lanes, free)
  }

  /** A kind that was never met here may be anything. */
  #listensTo(codes: readonly number[]): boolean {
    const { kinds, listens } = this.station
    return codes.some((code) => {
      const kind = kinds.names.get(String(code))
      return kind === undefined || listens(...kind)
    })
  }

  /** No further call begins; calls in flight have `graceMs` to end. Calling it twice is harmless. */
  retire(graceMs: number): Promise<void> {
    this.#retired ??= this.#retire(graceMs)
    return this.#retired
  }

  async #retire(graceMs: number): Promise<void> {
    for (const loop of this.#loops) loop.stop()
    const grace = setTimeout(() => this.#abort.abort(), graceMs)
    await this.#running
    clearTimeout(grace)
  }

  #tell(error: unknown): void {
    notify(this.station.listener, 'error', { during: 'deliver', error, subscription: this.subscription.name })
  }
}
