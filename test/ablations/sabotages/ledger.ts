// What keeps a ledger from sending twice when a call breaks off.

import { ledgerAtOnce, ledgerBrokeOff } from '../../../packages/hermod/test/interleavings/cases/ledger.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'sure-of-all',
    says: 'a refused connection counts for every effect that was begun',
    patches: [
      {
        file: 'src/flow/effects.ts',
        find: 'return open.length === 1 && open[0] === entry',
        replace: 'return entry !== undefined',
      },
    ],
    caughtBy: ledgerBrokeOff,
    red: /what is known after refused connection/,
  },
  {
    name: 'sure-at-once',
    says: 'of several effects without an answer the last one is taken for the one that threw',
    patches: [
      {
        file: 'src/flow/effects.ts',
        find: 'return open.length === 1 && open[0] === entry',
        replace: 'return open.at(-1) === entry',
      },
    ],
    caughtBy: ledgerAtOnce,
    red: /effects at once/,
  },
]
