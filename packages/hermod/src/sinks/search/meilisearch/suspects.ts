/**
 * Indexes in which a task failed without saying which document was to blame (`internal`). The server merges
 * neighbouring tasks, so one bad document fails others too: for a minute, writes to such an index are kept apart. A
 * document that then fails alone, while others pass, is the bad one.
 */
const suspectMs = 60_000

interface Suspect {
  readonly untilMs: number
  /** The first task that failed. */
  readonly first: number
  /** A later task has succeeded: it is not the server that is broken. */
  readonly othersPass: boolean
}

export class Suspects {
  readonly #indexes = new Map<string, Suspect>()

  has(uid: string): boolean {
    return this.#of(uid) !== undefined
  }

  othersPass(uid: string): boolean {
    return this.#of(uid)?.othersPass ?? false
  }

  failed(uid: string, task: number): void {
    const { first = task, othersPass = false } = this.#of(uid) ?? {}
    this.#indexes.set(uid, { untilMs: performance.now() + suspectMs, first, othersPass })
  }

  passed(uid: string, task: number): void {
    const known = this.#of(uid)
    if (known !== undefined && task > known.first) this.#indexes.set(uid, { ...known, othersPass: true })
  }

  #of(uid: string): Suspect | undefined {
    const known = this.#indexes.get(uid)
    if (known === undefined || performance.now() < known.untilMs) return known
    this.#indexes.delete(uid)
    return undefined
  }
}
