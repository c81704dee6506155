// What workers tell each other survives the way through NOTIFY; what is not understood means: look.

import { expect, it } from 'vitest'
import { hear, textOf } from '../../src/worker/news.ts'

it('what is told is heard', () => {
  const news = { lanes: [0, 15], kinds: [1, 32767], from: 4_294_967_296n, to: 4_294_967_300n }
  for (const told of [
    { what: 'committed' },
    { what: 'defined' },
    { what: 'numbered' },
    { what: 'numbered', news },
  ] as const) {
    expect(hear(textOf(told))).toEqual(told)
  }
})

it('what nobody said is a reason to look for commits', () => {
  for (const text of [undefined, '', 'numbered 1', 'numbered 1 ', 'numbered x y', 'numbered 1 2', 'something']) {
    expect(hear(text)).toEqual({ what: 'committed' })
  }
})
