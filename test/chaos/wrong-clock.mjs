// One worker lives with a wall clock that jumps by up to an hour. Its monotonic clock is right, as
// it is on a real machine whose time is set.

import { between, seeded } from './random.mjs'

const RealDate = Date
const hourMs = 3_600_000

export function jumpingClock(seed) {
  const random = seeded(seed ^ 0xc10c)
  let aheadMs = 0
  setInterval(() => {
    aheadMs = between(random, -hourMs, hourMs)
  }, 700).unref()
  const nowMs = () => RealDate.now() + aheadMs
  globalThis.Date = class extends RealDate {
    constructor(...given) {
      super(...(given.length === 0 ? [nowMs()] : given))
    }
    static now() {
      return nowMs()
    }
  }
  return nowMs
}
