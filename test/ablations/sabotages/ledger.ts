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
        find: 'return entry === this.#latest && !this.#atOnce',
        replace: 'return entry !== undefined',
      },
    ],
    caughtBy: ledgerBrokeOff,
    red: /what is known after refused connection/,
  },
  {
    name: 'sure-at-once',
    says: 'of several effects begun at once the last one is taken for the one that threw',
    patches: [
      {
        file: 'src/flow/effects.ts',
        find: 'entry === this.#latest && !this.#atOnce',
        replace: 'entry === this.#latest',
      },
    ],
    caughtBy: ledgerAtOnce,
    red: /effects at once/,
  },
]
