/**
 * The effects of one call, one by one: which were begun, what the sink said of each before the call ended. When a call
 * breaks off, what was begun and has no answer of its own is in doubt; only the last one begun may be known from the error.
 */
import { normaliseOutcomes, type Outcome } from '../sinks/sink.ts'
import type { Entry } from './result.ts'

export class Effects {
  readonly #ledger: boolean
  readonly #begun = new Set<Entry>()
  readonly #answers = new Map<Entry, Outcome>()
  #latest: Entry | undefined
  #recording = 0
  /** Several were begun at once: nobody can say whose error it is. */
  #atOnce = false

  constructor(ledger: boolean) {
    this.#ledger = ledger
  }

  /** Begun once `record` has ended: before that nothing may be sent. */
  async begin(entry: Entry, record: () => Promise<void>): Promise<void> {
    this.#atOnce ||= this.#recording > 0
    this.#latest = entry
    this.#recording++
    try {
      await record()
      this.#begun.add(entry)
    } finally {
      this.#recording--
    }
  }

  answered(entry: Entry, outcome: unknown): void {
    const [normal] = normaliseOutcomes([outcome], [entry.event], { ledger: this.#ledger })
    this.#answers.set(entry, normal as Outcome)
  }

  answer(entry: Entry): Outcome | undefined {
    return this.#answers.get(entry)
  }

  /** Nothing was begun, nothing said: the call is all there is. */
  get none(): boolean {
    return this.#begun.size + this.#answers.size === 0
  }

  /** It may have arrived, and cannot be asked for. */
  inDoubt(entry: Entry): boolean {
    return this.#ledger && this.#begun.has(entry)
  }

  /** What the call threw is about this entry. */
  threw(entry: Entry): boolean {
    return entry === this.#latest && !this.#atOnce
  }
}
