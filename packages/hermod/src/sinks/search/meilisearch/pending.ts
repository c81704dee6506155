/**
 * Versions this process has sent whose tasks it has not seen end. Until then they cannot be read, and
 * an older version must not slip in behind them.
 */
type Item = { readonly id: string; readonly version: bigint }

interface Noted {
  readonly uid: string
  readonly items: readonly Item[]
}

/** A limit, since tasks that another process polls never end here. */
const tasksMax = 1_000

export class PendingVersions {
  readonly #tasks = new Map<number, Noted>()
  readonly #versions = new Map<string, Map<string, bigint>>()

  note(uid: string, task: number, items: readonly Item[]): void {
    this.#tasks.set(task, { uid, items })
    const versions = this.#versions.get(uid) ?? new Map<string, bigint>()
    for (const { id, version } of items) versions.set(id, version)
    this.#versions.set(uid, versions)
    const [oldest] = this.#tasks.keys()
    if (this.#tasks.size > tasksMax && oldest !== undefined) this.ended(oldest)
  }

  versionOf(uid: string, id: string): bigint | undefined {
    return this.#versions.get(uid)?.get(id)
  }

  ended(task: number): void {
    const noted = this.#tasks.get(task)
    if (noted === undefined) return
    this.#tasks.delete(task)
    const versions = this.#versions.get(noted.uid)
    for (const { id, version } of noted.items) {
      if (versions?.get(id) === version) versions.delete(id)
    }
    if (versions?.size === 0) this.#versions.delete(noted.uid)
  }
}
