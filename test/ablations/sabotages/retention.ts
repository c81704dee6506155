// Retention without its safeguards: what is old goes, whoever still needs it.

import { bornExpired, idTakenLongAgo, slowCursor } from '../../../packages/hermod/test/upkeep/cases/drop.ts'
import { openProducer } from '../../../packages/hermod/test/upkeep/cases/partitions.ts'
import type { Sabotage } from '../sabotage.ts'

const file = 'routines/retention.sql'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'retention-by-time',
    says: 'a leaf of the log goes when it is old, read or not',
    patches: [
      {
        file,
        find: 'return coalesce(outbox.log_reader(of_name, to_value), outbox.log_follower(of_name, to_value));',
        replace: 'return null;',
      },
      {
        file,
        find: "when 'log' then outbox.log_reader(of_name, bounds.to_value)",
        replace: "when 'log' then null",
      },
    ],
    caughtBy: slowCursor,
    red: /events a slow subscription still got/,
  },
  {
    name: 'retention-by-creation',
    says: 'a leaf of events goes when it is closed, numbered or not',
    patches: [
      {
        file,
        find: "  elsif outbox.has_unseen(of_name, seen) then\n    return 'not numbered yet';\n",
        replace: '',
      },
      { file, find: 'outbox.has_unseen(of_name, seen) or ', replace: '' },
    ],
    caughtBy: bornExpired,
    red: /committed, not numbered/,
  },
  {
    name: 'drop-unseen',
    says: 'an emptied leaf is dropped without looking into it again',
    patches: [{ file, find: '  if filled then', replace: '  if false then' }],
    caughtBy: idTakenLongAgo,
    red: /a leaf that was filled again is not dropped/,
  },
  {
    name: 'drop-waits',
    says: 'a drop waits for the open producer, and everybody behind it',
    patches: [
      {
        file,
        find: "returns text\nlanguage plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$\ndeclare\n  leaf   regclass := (select p.leaf from outbox.partition p where p.parent = of_parent and p.name = of_name and p.to_value is not null);",
        replace:
          "returns text\nlanguage plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$\ndeclare\n  leaf   regclass := (select p.leaf from outbox.partition p where p.parent = of_parent and p.name = of_name and p.to_value is not null);",
      },
      {
        file,
        find: " or outbox.long_held(array[leaf, spare, format('outbox.%I', of_parent)::regclass])",
        replace: '',
      },
    ],
    caughtBy: openProducer,
    red: /waits more than 100 ms for a lock/,
  },
]
