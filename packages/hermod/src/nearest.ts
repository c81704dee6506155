/** Finds the known name a misspelt one probably meant: `notBefor` → `notBefore`. */

/** The closest of `known` within a third of its length, or undefined. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  if (given.length > 64) return undefined
  let best: string | undefined
  let bestDistance = Number.POSITIVE_INFINITY
  for (const name of known) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase())
    if (distance <= Math.max(1, Math.floor(name.length / 3)) && distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}

/** `; did you mean notBefore?`, or nothing. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const name = nearest(given, known)
  return name === undefined ? '' : `; did you mean ${name}?`
}

/** Levenshtein distance; two swapped neighbours count as one edit, because that is the most common typing error. */
export function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] && i > 1 && j > 1
      const swap = swapped ? (before[j - 2] ?? 0) + 1 : change
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change, swap))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
