/**
 * Failed tokens, counted per address. Beyond the limit an API token costs no look-up any more, unless it was good a while ago: those
 * who share the address keep working. Bounded in number and in time.
 */
import { networkOf } from './address.ts'

const windowMs = 60_000
const addressesMax = 10_000
const goodMs = 15 * 60_000
const goodMax = 10_000

interface Counted {
  readonly sinceMs: number
  count: number
}

export class FailedTokens {
  readonly #max: number
  readonly #clock: () => number
  readonly #failed = new Map<string, Counted>()
  /** Hashes of tokens, and when they were last good. */
  readonly #good = new Map<string, number>()

  constructor(max: number, clock: () => number = () => performance.now()) {
    this.#max = max
    this.#clock = clock
  }

  /** How long this address has to wait; undefined = not at all. */
  waitMs(ip: string): number | undefined {
    const counted = this.#current(networkOf(ip))
    if (counted === undefined || counted.count < this.#max) return undefined
    return counted.sinceMs + windowMs - this.#clock()
  }

  fail(ip: string): void {
    const network = networkOf(ip)
    const counted = this.#current(network) ?? { sinceMs: this.#clock(), count: 0 }
    counted.count++
    keep(this.#failed, network, counted, addressesMax)
  }

  succeed(tokenHash: string): void {
    keep(this.#good, tokenHash, this.#clock(), goodMax)
  }

  wasGood(tokenHash: string): boolean {
    const atMs = this.#good.get(tokenHash)
    return atMs !== undefined && this.#clock() - atMs < goodMs
  }

  #current(network: string): Counted | undefined {
    const counted = this.#failed.get(network)
    return counted !== undefined && this.#clock() - counted.sinceMs < windowMs ? counted : undefined
  }
}

/** The newest last; the oldest goes when there are too many. */
function keep<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > max && oldest !== undefined) map.delete(oldest)
}
