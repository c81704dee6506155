// Sabotages of what keeps operators and frozen sessions from stopping others.

import { brokeOff, laneLock, leafLock } from '../../../packages/hermod/test/interleavings/cases/operators.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'one-transaction-for-all',
    says: 'a decision on many rows holds their lanes until the last one',
    patches: [{ file: 'src/desk/retry.ts', find: 'const partRows = 500', replace: 'const partRows = 10_000' }],
    caughtBy: brokeOff,
    red: /promise resolved|half a decision/,
  },
  {
    name: 'parts-forget-each-other',
    says: 'a decision that goes on after a crash acts again on what it had done',
    patches: [
      {
        file: 'src/desk/retry.ts',
        find: 'mine.filter(({ position }) => !before.has(position))',
        replace: 'mine.filter(() => !before.has(subscription))',
      },
    ],
    caughtBy: brokeOff,
    red: /the rest/,
  },
  {
    name: 'lanes-under-the-numbering-lock',
    says: 'a step waits for a lane while it holds the lock of the numbering',
    patches: [
      {
        file: 'routines/sequence.sql',
        find: 'continued := last.previous is not null;',
        replace: 'perform from outbox.lane l for update; continued := last.previous is not null;',
      },
    ],
    caughtBy: laneLock,
    red: /events of another subscription|beside it/,
  },
  {
    name: 'a-leaf-at-any-price',
    says: 'a step that cannot have its next leaf numbers nothing, although there is room',
    patches: [
      {
        file: 'routines/partition.sql',
        find: 'if start_at <= from_pos + (to_pos - from_pos) / 2 then',
        replace: 'if true then',
      },
    ],
    caughtBy: leafLock,
    red: /lock timeout/,
  },
]
