/** Medians with their spread, percentiles, and the clock all processes of one host share. */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export function summary(values) {
  const known = values.filter(Number.isFinite)
  if (known.length === 0) return null
  return {
    median: median(known),
    min: Math.min(...known),
    max: Math.max(...known),
    of: known.length,
  }
}

export function percentile(values, share) {
  if (values.length === 0) return null
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** Three significant digits: more would be noise. */
export function rounded(value) {
  return Number.isFinite(value) ? Number(value.toPrecision(3)) : null
}

/** Milliseconds since the host started: the same in every process. */
export function hostMs() {
  return Number(process.hrtime.bigint()) / 1e6
}
