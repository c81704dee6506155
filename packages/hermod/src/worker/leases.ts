/**
 * The lanes one claim loop holds: takes them up to its share, renews them while they are used, gives
 * back what is beyond the share or idle. Deadlines run on the monotonic clock from before the
 * statement was sent, so they always end before the database's lease does.
 */
import { claim } from '../flow/claim.ts'
import { held, release, renew } from '../flow/lease.ts'
import { notify } from '../telemetry.ts'
import { HeldLane } from './lane.ts'
import type { Station } from './station.ts'

/** A lane without work is given back after this time. */
const idleMs = 2_000
/** While some lanes are held, further ones are looked for this often. */
const claimEveryMs = 500

export class Leases {
  lanes: HeldLane[] = []
  readonly #station: Station
  readonly #share: () => number
  #untilMs = 0
  #claimedAtMs = Number.NEGATIVE_INFINITY
  #busyAtMs = performance.now()

  constructor(station: Station, share: () => number) {
    this.#station = station
    this.#share = share
  }

  /** Milliseconds the lanes are certainly ours. */
  get leftMs(): number {
    return this.#untilMs - performance.now()
  }

  busy(): void {
    this.#busyAtMs = performance.now()
  }

  /** Up to the share, and not beyond it. */
  async balance(): Promise<void> {
    const share = this.#share()
    if (this.lanes.length > share) await this.giveBack(this.lanes.slice(share))
    if (this.lanes.length >= share) return
    const now = performance.now()
    if (this.lanes.length > 0 && now - this.#claimedAtMs < claimEveryMs) return
    this.#claimedAtMs = now
    const { db, subscription, owner, leaseMs, listener } = this.#station
    const claimed = await claim(db, subscription, owner, share - this.lanes.length, leaseMs)
    if (claimed.length === 0) return
    this.#untilMs = this.lanes.length === 0 ? now + leaseMs : Math.min(this.#untilMs, now + leaseMs)
    for (const lane of claimed) this.lanes.push(new HeldLane(lane))
    this.busy()
    const { name } = subscription
    const lanes = claimed.map(({ lane }) => lane)
    notify(listener, 'claim', {
      subscription: name,
      lanes,
      events: 0,
      scanned: 0,
      durationMs: performance.now() - now,
    })
  }

  /** Extends the leases when a third of them is gone; lanes that were taken over are dropped. */
  async keep(neededMs = 0): Promise<void> {
    const { db, subscription, owner, leaseMs } = this.#station
    if (this.lanes.length === 0) return
    if (this.leftMs > Math.max(neededMs, (leaseMs * 2) / 3)) return
    const sentAtMs = performance.now()
    const lanes = this.lanes
    const kept = await renew(db, subscription.name, owner, lanes, leaseMs)
    this.#untilMs = sentAtMs + leaseMs
    this.#dropOthers(lanes, kept)
  }

  /** Nothing is assumed after a lost answer: the database says what is held and where it stands. */
  async ask(): Promise<void> {
    const { db, subscription, owner } = this.#station
    const lanes = this.lanes
    if (lanes.length === 0) return
    const found = await held(db, subscription.name, owner, lanes)
    for (const lane of lanes) {
      lane.cursor = found.get(lane.lane) ?? lane.cursor
      lane.rewind()
    }
    this.#dropOthers(lanes, found)
  }

  /** These were found to belong to somebody else. */
  lost(lanes: readonly HeldLane[], events: number): void {
    this.lanes = this.lanes.filter((lane) => !lanes.includes(lane))
    for (const { lane, fence } of lanes) {
      notify(this.#station.listener, 'leaseLost', {
        subscription: this.#station.subscription.name,
        lane,
        fence,
        events,
      })
    }
  }

  #dropOthers(lanes: readonly HeldLane[], kept: { has(lane: number): boolean }): void {
    const gone = lanes.filter(({ lane }) => !kept.has(lane))
    if (gone.length > 0) this.lost(gone, 0)
  }

  async giveBack(lanes: readonly HeldLane[] = this.lanes): Promise<void> {
    if (lanes.length === 0) return
    this.lanes = this.lanes.filter((lane) => !lanes.includes(lane))
    const { db, subscription, owner } = this.#station
    await release(db, subscription.name, owner, lanes)
  }

  async giveBackIdle(): Promise<void> {
    if (performance.now() - this.#busyAtMs > idleMs) await this.giveBack()
  }
}
