// What keeps the handle of a task from moving a cursor it no longer belongs to.

import { afterReplay } from '../../../packages/hermod/test/interleavings/cases/parking.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'handle-for-ever',
    says: 'a handle holds although its lane was taken back since',
    patches: [
      {
        file: 'routines/park.sql',
        find: `     and c.pos = p."from" and c.fence = p.fence\n`,
        replace: `     and c.pos = p."from"\n`,
      },
    ],
    caughtBy: afterReplay,
    red: /what was taken back is sent again/,
  },
]
