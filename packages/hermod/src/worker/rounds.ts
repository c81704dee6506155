/**
 * The rounds of one claim loop: read → deliver → settle. The next batch is read while one is being
 * delivered, and a batch that passed is settled beside the next one:
 *
 *        read n+1                 read n+2
 *   ────deliver n────┐   ────deliver n+1────┐
 *                    └─settle n             └─settle n+1
 *
 * A batch that did not pass as a whole is settled before anything else is read, and what was read ahead
 * is read again: that read must see which aggregates are blocked by a failed event.
 */
import { Result } from '../flow/result.ts'
import { type Settlement, settlement } from '../flow/settle.ts'
import type { Breaker } from './breaker.ts'
import { judge } from './judge.ts'
import type { Leases } from './leases.ts'
import type { Parking } from './parking.ts'
import { Reading } from './reading.ts'
import { nextDelayMs } from './retry.ts'
import { type Batch, deliveredIn, hasNews, isEmpty, moved, oneOf, type Round, toSend } from './round.ts'
import type { Sending } from './sending.ts'
import { isPlain, Settler } from './settler.ts'
import type { Station } from './station.ts'

/** What a round found: nothing; events, and there may be more; or all there is. */
export type Found = 'nothing' | 'more' | 'all'

export interface RoundParts {
  readonly leases: Leases
  readonly sending: Sending
  readonly breaker: Breaker
  readonly parking: Parking | undefined
}

export class Rounds {
  readonly settler: Settler
  readonly reading: Reading
  readonly #station: Station
  readonly #leases: Leases
  readonly #sending: Sending
  readonly #breaker: Breaker
  readonly #parking: Parking | undefined
  readonly #mayReadAhead: () => boolean
  #next: Promise<Batch[] | undefined> | undefined
  /** The last batch passed as a whole, so the next may be read ahead. */
  #passing = true

  /** `mayReadAhead`: nothing else comes before the next round. */
  constructor(station: Station, { leases, sending, breaker, parking }: RoundParts, mayReadAhead: () => boolean) {
    this.#station = station
    this.#leases = leases
    this.#sending = sending
    this.#breaker = breaker
    this.#parking = parking
    this.#mayReadAhead = mayReadAhead
    this.reading = new Reading(station, leases)
    this.settler = new Settler(station)
  }

  /** A batch was read ahead. */
  get ahead(): boolean {
    return this.#next !== undefined
  }

  async round(): Promise<Found> {
    await this.resume()
    if (this.reading.lanes.length === 0) return 'nothing'
    const batches = await (this.#next ?? this.reading.read(false))
    this.#next = undefined
    if (batches !== undefined) return (await this.#process(batches)) ? this.#found() : 'nothing'
    // The subscription was paused, held or raised to a newer revision since the last heartbeat.
    await this.#station.refresh()
    return 'nothing'
  }

  /**
   * Waits for what a former owner had parked in lanes that are new here. It comes before anything that is sent in them,
   * also before a second send or a slice of a replay: the parked call may hold newer states, and be done already.
   */
  async resume(): Promise<void> {
    if (this.#station.state().mode === 'live') await this.#parking?.resume(this.#leases.lanes)
  }

  /** After a failure events may be due that were blocked. */
  #found(): Found {
    return this.#passing && !this.#leases.free.some(({ news }) => news) ? 'all' : 'more'
  }

  /** Settles everything delivered and drops what was read ahead. */
  async forget(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.settler.all()
    for (const lane of this.#leases.lanes) lane.rewind()
  }

  /**
   * While the breaker is open: sends one event of one lane, if this loop wins the probe; each time of another
   * lane. 'skipped': nothing could be sent, but cursors moved over events that do not match or are blocked.
   */
  async probe(): Promise<'tried' | 'skipped' | 'nothing'> {
    const batches = (await this.reading.read(true)) ?? []
    for (const { lane } of batches) lane.rewind()
    const one = batches.map(oneOf).find((batch) => batch !== undefined)
    if (one !== undefined) {
      if (await this.#breaker.mayProbe()) await this.#process([one])
      return 'tried'
    }
    const skipping = batches.filter(moved)
    if (skipping.length === 0) return 'nothing'
    await this.#process(skipping)
    return 'skipped'
  }

  /** Settles parked rounds whose calls have ended, like any other. */
  async land(): Promise<boolean> {
    for (let back = this.#parking?.next(); back !== undefined; back = this.#parking?.next()) {
      const free = this.reading.lanes
      const batches = back.round.batches.filter(({ lane }) => free.includes(lane))
      if (batches.length > 0) await this.#finish({ ...back.round, batches }, back.result)
      await this.settler.all()
      for (const { lane } of batches) lane.rewind()
    }
    return true
  }

  /** False: there was nothing to send, and nothing moved. */
  async #process(given: readonly Batch[]): Promise<boolean> {
    const rehearsed = this.#station.state().mode === 'dry-run'
    // A dry run began or ended since the read: its batch is void.
    if (given.some((batch) => (batch.rehearsed ?? rehearsed) !== rehearsed)) {
      this.settler.doubt = true
      return false
    }
    const leased = new Set(this.#leases.lanes)
    const batches = given.filter((batch) => leased.has(batch.lane) && hasNews(batch))
    const known = new Result()
    const sends = batches.map((batch) => toSend(batch, known))
    const entries = sends.flat()
    // Lanes with nothing to send do not wait for a parked call of the others.
    if (this.#parking !== undefined && entries.length > 0 && sends.some(isEmpty)) {
      const passed = await this.#process(batches.filter((_, at) => isEmpty(sends[at])))
      return (await this.#process(batches.filter((_, at) => !isEmpty(sends[at])))) || passed
    }
    if (entries.length === 0 && known.size === 0 && !batches.some(moved)) return false
    this.#leases.busy()
    // The lanes of a probe were rewound after its read.
    for (const { lane, read } of batches) if (read.through > lane.ahead) lane.ahead = read.through
    await this.settler.room()
    return this.#send({ batches, entries, known, rehearsed, startedMs: performance.now() })
  }

  async #send(round: Round): Promise<boolean> {
    const sent = this.#sending.send(round)
    if (round.batches.some(({ read: { more } }) => more)) this.#readAhead()
    const result = await (this.#parking?.follow(round, sent) ?? sent)
    // Undefined: the call is parked; `land` settles the round later.
    return result === undefined || this.#finish(round, result)
  }

  /** Not while batches fail, not if calls may be parked. */
  #readAhead(): void {
    if (!this.#passing || this.#parking !== undefined || !this.#mayReadAhead()) return
    this.#next = this.reading.read(false)
    this.#next.catch(() => {})
  }

  async #finish(round: Round, result: Result): Promise<boolean> {
    const { batches, entries, known, counts } = round
    result.add(known)
    const passes = this.#station.passes + deliveredIn(result)
    for (const { lane, read } of batches) lane.strikes.note([...read.due, ...read.fresh], result, passes)
    const settlements = this.#settlements(round, result)
    const cut = batches.some(({ read: { through } }, index) => settlements[index]?.to !== through)
    this.#passing = !cut && settlements.every(isPlain)
    await this.settler.add({ round, lanes: settlements, endedMs: performance.now() }, this.#passing)
    if (!this.#passing || this.settler.doubt) await this.forget()
    const tried = counts !== undefined || entries.some((entry) => result.has(entry))
    const well = await judge(this.#station, this.#breaker, result, tried)
    // A batch that could not be settled may have been too large for one statement.
    if (!well || this.settler.doubt) this.reading.failed(entries.length)
    else if (tried) this.reading.passed(entries.length)
    return well && (!cut || tried)
  }

  #settlements({ batches, counts }: Round, result: Result): Settlement[] {
    const { subscription, random } = this.#station
    const delay = (attempt: number, afterMs: number | undefined) =>
      nextDelayMs(subscription.retry, attempt, afterMs, random)
    return batches.map(({ lane, from, read }) => {
      const settled = settlement(subscription, { ...read, fence: lane.fence, from }, result, delay)
      return counts === undefined ? settled : { ...settled, ...counts }
    })
  }
}
