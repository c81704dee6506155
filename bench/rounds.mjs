/**
 * Interleaved rounds (A B C, A B C, …): what disturbs the machine disturbs all contestants alike.
 * A round is begun only when the time left is likely to be enough; the first one always is.
 */
import { rounded, summary } from './numbers.mjs'

/** `measure(name, round)` answers with a number or an object; null: could not be measured. */
export async function interleave({ names, rounds, untilMs = Number.POSITIVE_INFINITY }, measure) {
  const done = []
  let longestMs = 0
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now()
    if (round > 0 && startedMs + longestMs > untilMs) break
    const results = {}
    for (const name of names) results[name] = await measure(name, round)
    done.push(results)
    longestMs = Math.max(longestMs, performance.now() - startedMs)
  }
  return done
}

/** The values of one contestant over all rounds. */
export function valuesOf(rounds, pick) {
  return rounds.map(pick).filter((value) => Number.isFinite(value))
}

/** Median of the ratios within each round. */
export function ratio(rounds, above, below) {
  const ratios = rounds.map((round) => above(round) / below(round))
  return rounded(summary(ratios)?.median ?? Number.NaN)
}

/** `{ peer: ratio }` for everyone who was measured. */
export function ratios(rounds, peers, above, below) {
  return Object.fromEntries(peers.map((peer) => [peer, ratio(rounds, above, (round) => below(round, peer))]))
}

/** `{ name: { median, min, max, of } }` */
export function summaries(rounds, names, pick) {
  return Object.fromEntries(names.map((name) => [name, summary(valuesOf(rounds, (round) => pick(round, name)))]))
}
