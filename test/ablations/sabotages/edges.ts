// Locks that somebody keeps, and a mode that changed: each looked at in the right place.

import * as epoch from '../../../packages/hermod/test/interleavings/cases/epoch.ts'
import * as policies from '../../../packages/hermod/test/interleavings/cases/policies.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'epoch-waits-for-lanes',
    says: 'the first step of an epoch fails while somebody holds a lane',
    patches: [
      {
        file: 'routines/sequence.sql',
        find: 'exception when lock_not_available then\n    null;',
        replace: 'exception when division_by_zero then\n    null;',
      },
    ],
    caughtBy: epoch.epochBesideLock,
    red: /the first step of an epoch beside a lock/,
  },
  {
    name: 'read-in-any-mode',
    says: 'a read does not ask for which mode it is',
    patches: [{ file: 'routines/read.sql', find: "or (s.mode = 'dry-run') <> rehearsed then", replace: 'then' }],
    caughtBy: policies.dryRunUnheard,
    red: /really sent/,
  },
]
