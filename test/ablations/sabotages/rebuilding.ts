// What keeps a rebuild honest, taken out one at a time.

import { againstLive, takenOver } from '../../../packages/hermod/test/interleavings/cases/rebuilding.ts'
import type { Case } from '../../support/case.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'load-wins',
    says: 'a page is loaded as newer than what happens while it is on its way',
    patches: [
      {
        file: 'src/journeys/sources.ts',
        find: 'position: BigInt(head?.pos ?? 0) }',
        replace: 'position: BigInt(head?.pos ?? 0) + 1_000_000n }',
      },
    ],
    caughtBy: againstLive,
    red: /expected 31 to be 30/,
  },
  {
    name: 'swap-unasked',
    says: 'a rebuild that goes on after a crash does not ask whether it has swapped already',
    patches: [
      {
        file: 'src/journeys/rebuild.ts',
        find: `if (mine?.state === 'live') return`,
        replace: '',
      },
    ],
    caughtBy: takenOver.at(-1) as Case,
    red: /is no longer/,
  },
]
