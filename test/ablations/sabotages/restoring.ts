// Safeguards of a restore: the guard that notices it, and the fence around restored rows.

import { byXid } from '../../../packages/hermod/test/interleavings/cases/by-xid.ts'
import { restoreGuard, restoreOvertaken } from '../../../packages/hermod/test/interleavings/cases/restoring.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'no-identifier-guard',
    says: 'a step does not compare the system identifier and the database with those of the last',
    patches: [
      {
        file: 'routines/identity.sql',
        find: 'elsif last.system_identifier <> system_identifier or last.database <> database then',
        replace: 'elsif false then',
      },
    ],
    caughtBy: restoreGuard,
    red: /a step in a restored database/,
  },
  {
    name: 'rebase-without-fence',
    says: 'rebase leaves restored rows to be found by their old transaction ids',
    patches: [
      {
        file: 'routines/rebase.sql',
        find: 'update outbox.setting set fenced_id = up_to;',
        replace: '',
      },
    ],
    caughtBy: byXid(restoreOvertaken),
    red: /numbered while the counter passes restored xids/,
  },
]
