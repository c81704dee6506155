/** Keeps the last items, numbered in the order they came. */
export interface Ring<T> {
  add(make: (id: number) => T): T
  /** Newest first. */
  list(): readonly T[]
}

export function ring<T>(max: number): Ring<T> {
  const kept: T[] = []
  let last = 0
  return {
    add: (make) => {
      const one = make(++last)
      kept.unshift(one)
      kept.length = Math.min(kept.length, max)
      return one
    },
    list: () => [...kept],
  }
}
