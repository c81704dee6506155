/**
 * The lanes leased by one claim loop: claims them up to its share, renews them while they are used, gives
 * back those beyond the share or idle. Deadlines run on the monotonic clock and start before the statement
 * is sent, so they end before the lease in the database does, as long as this process runs. What a process sends
 * that was frozen right before the write is corrected by the second send (again.ts).
 */
import { type ClaimedLane, claim } from '../flow/claim.ts'
import { waitsInLine } from '../flow/deliver.ts'
import { abandon, leased, owned, release, renew } from '../flow/lease.ts'
import { notify } from '../telemetry.ts'
import { LeasedLane } from './lane.ts'
import type { Station } from './station.ts'

/** A lane without work is given back after this time. */
const idleMs = 2_000
/** With some lanes leased, the loop looks this often for further ones that are said to have work. */
const claimEveryMs = 50
/** And this often for lanes without news: their owner may have died. */
const lookEveryMs = 1_000

/** Clocks that differ by more than this since the last look: the machine slept, or somebody set one. */
const sleepMs = 1_000

/** The claim loops of one subscription in one worker: they share one owner name. */
const loopsOf = new WeakMap<Station, Set<Leases>>()

export class Leases {
  lanes: LeasedLane[] = []
  /** Called when lanes were lost to another worker. */
  readonly onLost = new Set<() => void>()
  readonly #station: Station
  readonly #share: () => number
  #claimedAtMs = Number.NEGATIVE_INFINITY
  #busyAtMs = performance.now()
  /** A lane that no loop of this worker has may have work. */
  #sought = true
  /** Lanes that were lost to another worker. */
  #dropped: LeasedLane[] = []
  #abandonedAtMs = Number.NEGATIVE_INFINITY
  #clocks = { wallMs: Date.now(), monotonicMs: performance.now() }
  /** The claim under way, if any. */
  #claiming: Promise<unknown> | undefined

  constructor(station: Station, share: () => number) {
    this.#station = station
    this.#share = share
    const loops = loopsOf.get(station) ?? new Set()
    loopsOf.set(station, loops.add(this))
  }

  /** For how many milliseconds all leases are certainly valid. */
  get leftMs(): number {
    return Math.min(...this.lanes.map(({ untilMs }) => untilMs)) - performance.now()
  }

  /** The monotonic clock stands still while a machine sleeps, the other one does not: then the database is asked first. */
  #noticeSleep(): void {
    const [wallMs, monotonicMs] = [Date.now(), performance.now()]
    const sleptMs = wallMs - this.#clocks.wallMs - (monotonicMs - this.#clocks.monotonicMs)
    this.#clocks = { wallMs, monotonicMs }
    if (sleptMs > sleepMs) for (const lane of this.lanes) lane.untilMs = Math.min(lane.untilMs, monotonicMs)
  }

  /** When to claim lanes or give some back; infinite: this loop has its share, or cannot give the others back yet. */
  get balanceAtMs(): number {
    const share = this.#share()
    const missing = share - this.lanes.length
    if (missing < 0 && this.#spare(share).length > 0) return Number.NEGATIVE_INFINITY
    if (missing <= 0) return Number.POSITIVE_INFINITY
    const none = this.lanes.length === 0
    if (this.#sought) return none ? Number.NEGATIVE_INFINITY : this.#claimedAtMs + claimEveryMs
    return this.#claimedAtMs + (none ? this.#station.pollMs : lookEveryMs)
  }

  /** Lanes without a parked call. */
  get free(): LeasedLane[] {
    return this.lanes.filter(({ parked }) => parked === undefined)
  }

  /** Nothing was found in these lanes for a while. */
  get idle(): boolean {
    return performance.now() - this.#busyAtMs > idleMs
  }

  get missing(): boolean {
    return this.lanes.length < this.#share()
  }

  /** There may be work in lanes that no loop of this worker has. */
  seek(): void {
    this.#sought = true
  }

  /** A sink ignored the end of its call, so it may still be sending. */
  abandoned(): void {
    this.#abandonedAtMs = performance.now()
  }

  get #unsure(): boolean {
    return performance.now() - this.#abandonedAtMs < this.#station.leaseMs
  }

  busy(): void {
    this.#busyAtMs = performance.now()
  }

  /** Claims lanes up to the share, and gives back those beyond it. */
  async balance(): Promise<void> {
    const share = this.#share()
    if (this.lanes.length > share) await this.giveBack(this.#spare(share))
    if (this.lanes.length >= share) return
    const now = performance.now()
    this.#claimedAtMs = now
    this.#sought = false
    const { db, subscription, owner, leaseMs, listener } = this.#station
    const callMs = canWinLate(subscription) ? subscription.callMs : null
    const limits = { lanesMax: share - this.lanes.length, leaseMs, callMs }
    const claiming = claim(db, subscription, owner, limits).then((claimed) => this.#take(claimed, now))
    this.#claiming = claiming.catch(() => {})
    const lanes = await claiming.finally(() => {
      this.#claiming = undefined
    })
    if (lanes.length === 0) return
    this.busy()
    notify(listener, 'claim', { subscription: subscription.name, lanes, durationMs: performance.now() - now })
  }

  #take(claimed: readonly ClaimedLane[], sentAtMs: number): number[] {
    this.#dropClaimedAgain(claimed)
    const { leaseMs } = this.#station
    this.lanes = [...this.lanes, ...claimed.map((lane) => new LeasedLane(lane, sentAtMs + leaseMs))]
    return claimed.map(({ lane }) => lane)
  }

  /** Lanes beyond the share; lanes with a parked call last, and never one whose handle is not recorded. */
  #spare(share: number): LeasedLane[] {
    const tasks = this.lanes.filter(({ parked }) => parked !== undefined)
    const kept = tasks.filter(({ parked }) => parked === 'waiting')
    const others = this.lanes.filter((lane) => !tasks.includes(lane))
    const order = [...kept, ...tasks.filter((lane) => !kept.includes(lane)), ...others]
    return order.slice(Math.max(share, kept.length))
  }

  /** A lease that ran out unnoticed, while the process was stopped: the lane starts again under its new fence. */
  #dropClaimedAgain(claimed: readonly { readonly lane: number }[]): void {
    const again = new Set(claimed.map(({ lane }) => lane))
    this.#drop(this.lanes.filter(({ lane }) => again.has(lane)))
  }

  /** Nothing is left in the leased lanes: looks for others at once. True: there were some. */
  async more(): Promise<boolean> {
    const before = this.lanes.length
    this.#claimedAtMs = Number.NEGATIVE_INFINITY
    await this.balance()
    return this.lanes.length > before
  }

  /** Renews the leases when a third of their time is gone; drops lanes that were taken over. */
  async keep(neededMs = 0): Promise<void> {
    const { db, subscription, owner, leaseMs } = this.#station
    if (this.lanes.length === 0) return
    this.#noticeSleep()
    if (this.leftMs > Math.max(neededMs, (leaseMs * 2) / 3)) return
    const sentAtMs = performance.now()
    const { lanes } = this
    const { kept, locked } = await renew(db, subscription.name, owner, lanes, leaseMs)
    for (const lane of lanes) if (kept.has(lane.lane)) lane.untilMs = sentAtMs + leaseMs
    // A lane whose row somebody holds stays until the calls of the others would have to be cut short because of it.
    const shortMs = performance.now() + Math.max(neededMs, leaseMs / 3)
    const waits = lanes.filter((lane) => locked.has(lane.lane) && lane.untilMs > shortMs)
    this.#dropOthers(lanes, new Set([...kept, ...waits.map(({ lane }) => lane)]))
  }

  /** After a lost answer: the database says which lanes are still leased and where they stand. */
  async ask(): Promise<void> {
    const { db, subscription, owner } = this.#station
    const { lanes } = this
    if (lanes.length === 0) return
    const found = await leased(db, subscription.name, owner, lanes)
    for (const lane of lanes) {
      lane.cursor = found.get(lane.lane) ?? lane.cursor
      lane.rewind()
    }
    this.#dropOthers(lanes, found)
  }

  /**
   * A claim whose answer was lost, or a release that failed, leaves lanes that no loop serves. They are
   * released now, instead of waiting for the end of their leases.
   */
  async releaseForgotten(): Promise<void> {
    const { db, subscription, owner } = this.#station
    const ours = await owned(db, subscription.name, owner)
    const sisters = [...(loopsOf.get(this.#station) ?? [])]
    // What a sister has claimed is not forgotten while the answer is on its way.
    await Promise.all(sisters.map((loop) => loop.#claiming))
    const served = sisters.flatMap(({ lanes }) => lanes)
    const isServed = (lane: number, fence: bigint) => served.some((one) => one.lane === lane && one.fence === fence)
    const forgotten = ours.filter(({ lane, fence }) => !isServed(lane, fence))
    await release(db, subscription.name, owner, forgotten)
  }

  #dropOthers(lanes: readonly LeasedLane[], kept: { has(lane: number): boolean }): void {
    this.#drop(lanes.filter((lane) => !kept.has(lane.lane) && this.lanes.includes(lane)))
  }

  /** An operator took lanes away because of a call. If it has ended by now, the next owner need not wait. */
  async releaseInterrupted(): Promise<void> {
    if (this.#unsure) return
    const lanes = this.#dropped
    this.#dropped = []
    const { db, subscription, owner } = this.#station
    await release(db, subscription.name, `interrupted ${owner}`, lanes)
  }

  #drop(gone: readonly LeasedLane[]): void {
    if (gone.length === 0) return
    this.#dropped.push(...gone)
    this.lanes = this.lanes.filter((lane) => !gone.includes(lane))
    for (const tell of this.onLost) tell()
    const { listener, subscription } = this.#station
    for (const { lane, fence } of gone) {
      notify(listener, 'leaseLost', { subscription: subscription.name, lane, fence })
    }
  }

  /** Its loop has ended. */
  end(): void {
    loopsOf.get(this.#station)?.delete(this)
  }

  async giveBack(lanes: readonly LeasedLane[] = this.lanes): Promise<void> {
    if (lanes.length === 0) return
    this.lanes = this.lanes.filter((lane) => !lanes.includes(lane))
    const { db, subscription, owner } = this.#station
    const give = this.#unsure ? abandon : release
    await give(db, subscription.name, owner, lanes)
  }
}

/** A late write can overwrite a newer one: order matters here, and the destination does not compare versions. */
function canWinLate(subscription: Station['subscription']): boolean {
  return waitsInLine(subscription) && subscription.sink.capabilities?.externalVersion !== true
}
