// What flows, as one line: events in and out per second, the head of the log, and per subscription
// its health, how much waits and since when, and which rows need attention.

export class Pulse {
  #outbox
  #totals
  #last = { atMs: performance.now(), in: 0, out: 0 }

  /** `totals` gives what was committed and delivered since the start. */
  constructor(outbox, totals) {
    this.#outbox = outbox
    this.#totals = totals
  }

  async line() {
    const { head, subscriptions } = await this.#outbox.stats()
    const now = { atMs: performance.now(), ...this.#totals() }
    const seconds = Math.max(0.001, (now.atMs - this.#last.atMs) / 1_000)
    const per = (name) => ((now[name] - this.#last[name]) / seconds).toFixed(1).padStart(5)
    const flow = `in ${per('in')}/s  out ${per('out')}/s  position ${head}`
    this.#last = now
    return [flow, ...subscriptions.map(subscriptionText).reverse()].join('  |  ')
  }
}

/** A count that could not be had in time is a dash, never a zero. */
function subscriptionText({ name, health, pending, oldestPendingAgeMs, retrying, dead }) {
  const age = (oldestPendingAgeMs ?? 0) >= 1_000 ? ` ${Math.round(oldestPendingAgeMs / 1_000)} s` : ''
  const again = (retrying ?? 0) > 0 ? `, ${retrying} retrying` : ''
  return `${name} ${health.word}: ${pending ?? '–'} waiting${age}${again}, ${dead ?? '–'} dead`
}
