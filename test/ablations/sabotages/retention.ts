// Retention without its safeguards: what is old goes, whoever still needs it.

import { bornExpired, idTakenLongAgo, slowCursor } from '../../../packages/hermod/test/upkeep/cases/drop.ts'
import { openProducer } from '../../../packages/hermod/test/upkeep/cases/partitions.ts'
import {
  heldFollowers,
  neededPositions,
  neededRows,
  slowTable,
} from '../../../packages/hermod/test/upkeep/cases/retention-by-day.ts'
import type { Sabotage } from '../sabotage.ts'

const file = 'routines/retention.sql'
const trim = 'routines/trim.sql'

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
  {
    name: 'no-trim',
    says: 'only whole leaves go: a slow table keeps everything',
    patches: [{ file: trim, find: 'return greatest(least(days / 7, 1), days / 12);', replace: 'return 3650;' }],
    caughtBy: slowTable,
    red: /no event is older than eight days/,
  },
  {
    name: 'trim-unread',
    says: 'positions go when they are old, read or not',
    patches: [{ file: trim, find: 'cut := least(cut, low);', replace: '' }],
    caughtBy: neededPositions,
    red: /unread by a paused subscription/,
  },
  {
    name: 'trim-kept',
    says: 'positions go that a replay needs',
    patches: [{ file: trim, find: 'cut := least(cut, (select min(k.pos) + 1 from outbox.keep k));', replace: '' }],
    caughtBy: neededPositions,
    red: /kept for a replay/,
  },
  {
    name: 'trim-unnumbered',
    says: 'events go that have no position yet',
    patches: [
      {
        file: trim,
        find: 'and (pg_visible_in_snapshot(e.xid, $3) or e.id <= (select t.fenced_id from outbox.setting t))',
        replace: 'and ($3::pg_snapshot is not null)',
      },
    ],
    caughtBy: neededRows,
    red: /neither numbered nor due yet/,
  },
  {
    name: 'trim-scheduled',
    says: 'events go that are not due yet',
    patches: [{ file: trim, find: 'and e.id not in (select event_id from filed)', replace: '' }],
    caughtBy: neededRows,
    red: /neither numbered nor due yet/,
  },
  {
    name: 'trim-followers',
    says: 'positions go that wait behind a failed event',
    patches: [{ file: trim, find: 'return least(cut, low);', replace: 'return cut;' }],
    caughtBy: heldFollowers,
    red: /positions that wait behind it/,
  },
  {
    name: 'expire-without-release',
    says: 'an expired dead letter of a coalesced subscription takes its followers with it',
    patches: [{ file: 'routines/prune.sql', find: 'perform outbox.walk_to_newest(d, up_to);', replace: 'null;' }],
    caughtBy: heldFollowers,
    red: /released when the dead letter expired/,
  },
]
