// Safeguards of what is cached from the database when a failover starts a new epoch.

import { kindsAfterEpoch, kindsBetween } from '../../../packages/hermod/test/interleavings/cases/epoch.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'kinds-for-ever',
    says: 'a worker keeps the names of kinds when the epoch changes',
    patches: [
      {
        file: 'src/flow/kinds.ts',
        find: 'if (epoch !== this.#epoch) this.#names = new Map()',
        replace: '',
      },
    ],
    caughtBy: kindsAfterEpoch,
    // Events of a kind that is taken for another may not be listened to at all.
    red: /the type after a failover|waited 10000 ms for a condition/,
  },
  {
    name: 'kinds-of-any-epoch',
    says: 'a batch is named by what another epoch says',
    patches: [
      {
        file: 'src/flow/kinds.ts',
        find: 'if (rows.some(({ head }) => epochOf(BigInt(head as string)) !== epoch)) throw new EpochChanged()',
        replace: '',
      },
    ],
    caughtBy: kindsBetween,
    red: /delivered under a wrong type/,
  },
]
