// Randomness that a seed repeats.

/** A function of [0, 1): mulberry32. Small, and good enough to choose workloads. */
export function seeded(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function between(random, min, max) {
  return min + Math.floor(random() * (max - min + 1))
}

export function pick(random, list) {
  return list[Math.floor(random() * list.length)]
}

/** Ranks 0 … n-1, rank k with weight 1 / (k + 1)^skew; skew 0 is uniform. */
export function zipf(random, n, skew) {
  const sums = []
  let total = 0
  for (let rank = 1; rank <= n; rank++) {
    total += 1 / rank ** skew
    sums.push(total)
  }
  return () => lowest(sums, random() * total)
}

function lowest(sums, wanted) {
  let low = 0
  let high = sums.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (sums[middle] < wanted) low = middle + 1
    else high = middle
  }
  return low
}
