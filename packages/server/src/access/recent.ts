/**
 * What was found out a moment ago: bounded in number and in age, so that one request after another
 * need not ask again, and so that a change is noticed within that age.
 */
export interface Recent<T> {
  /** The value kept under the key, or what `find` answers. Failures are not kept. */
  get(key: string, find: () => Promise<T>): Promise<T>
  readonly size: number
}

interface Kept<T> {
  readonly since: number
  readonly value: Promise<T>
}

export function recent<T>(clock: () => Date, keptMs: number, max: number): Recent<T> {
  const kept = new Map<string, Kept<T>>()

  /** Reading makes an entry the most recent one. */
  const look = (key: string, now: number): Promise<T> | undefined => {
    const found = kept.get(key)
    if (found === undefined) return undefined
    kept.delete(key)
    // A clock that was set back must not keep anything alive.
    if (now < found.since || now >= found.since + keptMs) return undefined
    kept.set(key, found)
    return found.value
  }

  /** The promise is kept, so that requests arriving together ask once. */
  const keep = (key: string, now: number, find: () => Promise<T>): Promise<T> => {
    const entry = { since: now, value: find() }
    kept.set(key, entry)
    entry.value.catch(() => {
      if (kept.get(key) === entry) kept.delete(key)
    })
    const [oldest] = kept.keys()
    if (kept.size > max && oldest !== undefined) kept.delete(oldest)
    return entry.value
  }

  return {
    get: (key, find) => {
      const now = clock().getTime()
      return look(key, now) ?? keep(key, now, find)
    },
    get size() {
      return kept.size
    },
  }
}
