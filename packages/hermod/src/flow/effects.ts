/**
 * The effects of one call of a ledger sink: which were begun, and what the sink said about each before the call ended. If a
 * call breaks off, an effect that was begun and has no answer is in doubt. The error that the call threw is about a certain
 * effect only if no other is in doubt: several may have been under way at once.
 */
import { normaliseOutcomes, type Outcome } from '../sinks/sink.ts'
import type { Entry } from './result.ts'

export class Effects {
  readonly #ledger: boolean
  readonly #begun = new Set<Entry>()
  readonly #answers = new Map<Entry, Outcome>()

  constructor(ledger: boolean) {
    this.#ledger = ledger
  }

  /** An effect counts as begun once `record` has ended: before that nothing may be sent. */
  async begin(entry: Entry, record: () => Promise<void>): Promise<void> {
    await record()
    this.#begun.add(entry)
  }

  answered(entry: Entry, outcome: unknown): void {
    const [normal] = normaliseOutcomes([outcome], [entry.event], { ledger: this.#ledger })
    this.#answers.set(entry, normal as Outcome)
  }

  answer(entry: Entry): Outcome | undefined {
    return this.#answers.get(entry)
  }

  /** Nothing was begun and nothing answered: only the call itself has an outcome. */
  get none(): boolean {
    return this.#begun.size + this.#answers.size === 0
  }

  /** It may have arrived, and nobody can tell. */
  inDoubt(entry: Entry): boolean {
    return this.#ledger && this.#begun.has(entry)
  }

  /** The error that the call threw is about this entry. */
  threw(entry: Entry): boolean {
    const open = [...this.#begun].filter((begun) => !this.#answers.has(begun))
    return open.length === 1 && open[0] === entry
  }
}
