// Recovery: from the end of a fault until the last subscription has its markers, and of that the calm part.

import { expect, it } from 'vitest'
import { recoveries } from './recovery.mjs'

type Entry = Record<string, unknown> & { k: string }

const sub = (name: string): Entry => ({ k: 'sub', name, order: 'aggregate', coalesce: 'none' })
const recv = (name: string, t: number): Entry => ({ k: 'recv', t, sub: name, key: 'mark-1.1-0', v: 1 })
const marked: Entry[] = [
  sub('webhook'),
  sub('search'),
  { k: 'try', tx: 'mark-1.1', ev: [['mark-1.1-0', 'row/m00', 1]] },
  { k: 'marker', tx: 'mark-1.1', after: 'db-crash', endedAt: 1_000 },
]

it('the last subscription counts, by kind of fault and by subscription', () => {
  const found = recoveries([...marked, recv('webhook', 1_400), recv('search', 1_900)])
  expect(found).toMatchObject({
    recoveryMsMax: 900,
    recoveryMs: { 'db-crash': 900 },
    recoveryMsBySub: { webhook: 400, search: 900 },
  })
})

it('calm is the time without another fault; faults that overlap count once', () => {
  const faults = [
    { k: 'fault', happened: true, from: 1_100, until: 1_400 },
    { k: 'fault', happened: true, from: 1_300, until: 1_500 },
    { k: 'fault', happened: false, from: 1_500, until: 1_900 },
  ]
  const found = recoveries([...marked, ...faults, recv('webhook', 1_050), recv('search', 1_900)])
  expect(found).toMatchObject({ recoveryMsMax: 900, recoveryCalmMs: { max: 500 } })
})
