// Subscriptions at run time: idle ones must not miss anything, and changes must not repeat anything.

import { idleCursors, leftBehind } from '../../../packages/hermod/test/interleavings/cases/idle.ts'
import { changedMeanwhile } from '../../../packages/hermod/test/interleavings/cases/run-time.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'pass-under-new-filter',
    says: 'cursors of idle lanes pass what lies before a raised filter by the new filter',
    patches: [
      {
        file: 'routines/waiting.sql',
        find: ' and c.pos < head and f.from_pos <= c.pos\n',
        replace: ' and c.pos < head\n',
      },
    ],
    caughtBy: idleCursors,
    red: /its filter was raised in between/,
  },
  {
    name: 'pass-leased-lanes',
    says: 'cursors of leased lanes are moved, too',
    patches: [
      {
        file: 'routines/waiting.sql',
        find: 'where l.owner is null and outbox.is_over(l.lease_until, now) and l.parked is null',
        replace: 'where l.parked is null',
      },
    ],
    caughtBy: idleCursors,
    red: /leased/,
  },
  {
    name: 'no-standing',
    says: 'nobody asks for what was heard of and not delivered',
    patches: [
      {
        file: 'routines/waiting.sql',
        find: "b.behind and outbox.is_over(l.lease_until, now) and s.mode <> 'paused'",
        replace: "false and outbox.is_over(l.lease_until, now) and s.mode <> 'paused'",
      },
    ],
    caughtBy: leftBehind,
    red: /waited .* for what was given back to be delivered/,
  },
  {
    name: 'late-settle-refused',
    says: 'what passed before a definition was changed is not settled',
    patches: [
      {
        file: 'routines/settle.sql',
        find: 'select (s).kind is not null and (s).revision = rev + 1',
        replace: 'select false and (s).revision = rev + 1',
      },
    ],
    caughtBy: changedMeanwhile,
    red: /settled after the change/,
  },
]
