// Sabotages of what protects the engine from its surroundings: privileges, settings, encodings, a past that went away.

import { nothingPrivileged } from '../../../packages/hermod/test/interleavings/cases/privileged.ts'
import { headWentBack } from '../../../packages/hermod/test/interleavings/cases/went-back.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'timeline-needed',
    says: 'a step fails where the position in the write-ahead log may not be looked at',
    patches: [
      {
        file: 'routines/identity.sql',
        find: '::bit(32)::integer; exception when insufficient_privilege',
        replace: '::bit(32)::integer; exception when division_by_zero',
      },
    ],
    caughtBy: nothingPrivileged,
    red: /permission denied for function pg_(walfile_name|current_wal_lsn)/,
  },
  {
    name: 'unseen-timeline-counts',
    says: 'a timeline that could not be seen is compared with one that can',
    patches: [
      {
        file: 'routines/sequence.sql',
        find: 'coalesce(me[3]::integer, last.timeline, 0), me[2]::oid,',
        replace: 'me[3]::integer, me[2]::oid,',
      },
    ],
    caughtBy: nothingPrivileged,
    red: /null value in column "timeline"/,
  },
  {
    name: 'no-memory-of-the-head',
    says: 'a step goes on where the log ends, whatever was seen before',
    patches: [{ file: 'routines/sequence.sql', find: 'if pos < known_head then', replace: 'if false then' }],
    caughtBy: headWentBack,
    red: /a position that was used before/,
  },
]
