/**
 * Writers of the same document take turns within this process, in the order they came; writers of
 * different documents never wait. For engines that cannot compare versions themselves.
 */
export class WriteTurns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** All turns are requested at once, so two writers cannot deadlock. */
  async run<T>(ids: Iterable<string>, work: () => Promise<T>): Promise<T> {
    const wanted = new Set(ids)
    const before = new Set<Promise<unknown>>()
    for (const id of wanted) {
      const other = this.#last.get(id)
      if (other !== undefined) before.add(other)
    }
    const mine = before.size === 0 ? work() : Promise.all(before).then(work)
    const ended = mine.then(
      () => {},
      () => {},
    )
    for (const id of wanted) this.#last.set(id, ended)
    try {
      return await mine
    } finally {
      for (const id of wanted) if (this.#last.get(id) === ended) this.#last.delete(id)
    }
  }
}
