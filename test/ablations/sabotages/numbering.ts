// Sabotages of numbering and emitting.

import { byXid } from '../../../packages/hermod/test/interleavings/cases/by-xid.ts'
import * as cost from '../../../packages/hermod/test/interleavings/cases/cost.ts'
import * as fresh from '../../../packages/hermod/test/interleavings/cases/fresh-payload.ts'
import * as numbering from '../../../packages/hermod/test/interleavings/cases/numbering.ts'
import * as stepping from '../../../packages/hermod/test/interleavings/cases/stepping.ts'
import type { Patch, Sabotage } from '../sabotage.ts'

const step = (find: string, replace: string): Patch => ({
  file: 'routines/sequence.sql',
  find,
  replace,
})

const guard = (find: string): Patch => ({ file: 'routines/identity.sql', find, replace: 'if false then' })

const tryLock = 'if not pg_try_advisory_xact_lock(4841297201) then'
const takeSnapshot = 'upper := pg_current_snapshot();'
const lateBranch = 'select b.* from outbox.event b where b.xid = any (late)'
const firstNumbering = `row_number() over (order by h.id), h.id, h.hash, h.bytes, outbox.lane_of(h.hash, lane_count), coalesce(k.code, outbox.kind_code(h.type, h.aggregate_type))
    from (select e.id, e.type, e.aggregate_type, e.bytes, outbox.hash(e.aggregate_type, e.aggregate_id) as hash
            from (select w.id, w.type, w.aggregate_type, w.aggregate_id, w.bytes from (`

export const sabotages: readonly Sabotage[] = [
  {
    name: 'no-late-branch',
    says: 'what was in progress at the previous step is not looked at again',
    patches: [step(lateBranch, 'select b.* from outbox.event b where false')],
    caughtBy: byXid(numbering.lateCommit),
    red: /events of the late commit/,
  },
  {
    name: 'no-running-branch',
    says: 'who was in progress at the previous step without being listed is not looked at again',
    patches: [
      step(
        'select c.* from outbox.event c where c.xid >= pg_snapshot_xmax(lower)',
        'select c.* from outbox.event c where false',
      ),
    ],
    caughtBy: byXid(numbering.xidAtXmax),
    red: /events of ids at or above xmax/,
  },
  {
    name: 'near-without-late',
    says: 'a window read by id begins as if nobody listed in its lower snapshot had committed',
    patches: [step('least(pg_snapshot_xmax(lower), late[1])', 'pg_snapshot_xmax(lower)')],
    caughtBy: numbering.lateCommit,
    red: /events of the late commit/,
  },
  {
    name: 'near-without-running',
    says: 'a window read by id begins as if nobody had been in progress without being listed',
    patches: [step('least(pg_snapshot_xmax(lower), late[1])', 'least(last.xid, late[1])')],
    caughtBy: numbering.xidAtXmax,
    red: /events of ids at or above xmax/,
  },
  {
    name: 'near-backwards',
    says: 'positions of a window read by id are not in order of id',
    patches: [step('row_number() over (order by w.id), w.id', 'row_number() over (order by w.id desc), w.id')],
    caughtBy: numbering.xidBeforeRow,
    red: /I3: events of an aggregate that are out of order/,
  },
  {
    name: 'near-row-xmin',
    says: "a window read by id looks at the row's own xmin",
    patches: [
      step(
        'pg_visible_in_snapshot(e.xid, upper) and not pg_visible_in_snapshot(e.xid, lower)',
        'pg_visible_in_snapshot(e.xmin::text::xid8, upper) and not pg_visible_in_snapshot(e.xmin::text::xid8, lower)',
      ),
    ],
    caughtBy: numbering.savepointRollback,
    red: /events that survive savepoints/,
  },
  {
    name: 'id-before-xid',
    says: 'an event takes its id before its transaction has an xid',
    patches: [
      {
        file: 'routines/emit.sql',
        find: '  xid xid8 := pg_current_xact_id();   -- before the first id: the insert may wait for a key after it\n',
        replace: '',
      },
    ],
    caughtBy: numbering.keyWaitedForListed,
    red: /an id taken before its row was written/,
  },
  {
    name: 'id-before-xid, by xid',
    says: 'an event takes its id before its transaction has an xid',
    patches: [
      {
        file: 'routines/emit.sql',
        find: '  xid xid8 := pg_current_xact_id();   -- before the first id: the insert may wait for a key after it\n',
        replace: '',
      },
    ],
    caughtBy: byXid(numbering.keyWaitedFor),
    red: /an id taken before its row was written/,
  },
  {
    name: 'last-id-unlocked',
    says: 'the last id is read without locking the page of the sequence',
    patches: [
      step(
        "return coalesce(pg_sequence_last_value('outbox.event_id'), 0);",
        // A scan locks the page until it has found the row, then reads the row. The pause between the two shows on
        // any machine what otherwise needs two free cores.
        'begin atomic select e.last_value from outbox.event_id e where pg_sleep(0.001) is not null; end;',
      ),
    ],
    caughtBy: numbering.lastIdAhead,
    red: /reads of an id that was never handed out/,
  },
  {
    name: 'no-lock',
    says: 'a step without its advisory lock',
    patches: [step(tryLock, 'if false then')],
    caughtBy: stepping.twoSequencers,
    red: /a second sequencer: waits for a lock/,
  },
  {
    name: 'snapshot-with-lock',
    says: 'lock and snapshot in one statement',
    patches: [
      step(
        `${tryLock}\n    return;\n  end if;`,
        'select pg_current_snapshot() into upper from pg_advisory_xact_lock(4841297201);',
      ),
      step(takeSnapshot, ''),
    ],
    caughtBy: stepping.snapshotAfterLock,
    red: /I5: events with more than one position/,
  },
  {
    name: 'xmax-is-next',
    says: 'every id handed out and not in xip counts as finished',
    patches: [
      step(
        takeSnapshot,
        `select format('%s:%s:%s', pg_snapshot_xmin(s), pg_current_xact_id(),
           (select string_agg(x::text, ',' order by x) from pg_snapshot_xip(s) x))::pg_snapshot into upper from pg_current_snapshot() s;`,
      ),
    ],
    caughtBy: numbering.xidAtXmax,
    red: /events of ids at or above xmax/,
  },
  {
    name: 'order-by-xid',
    says: 'positions by (xid, id)',
    patches: [
      step(
        firstNumbering,
        firstNumbering.replace('h.id', '(select x.xid from outbox.event x where x.id = h.id), h.id'),
      ),
    ],
    caughtBy: byXid(numbering.xidBeforeRow),
    red: /I3: events of an aggregate that are out of order/,
  },
  {
    name: 'order-left-to-joins',
    says: 'positions in the order rows happen to arrive',
    patches: [step(firstNumbering, firstNumbering.replace('(order by h.id)', '()'))],
    caughtBy: cost.littleMemory,
    red: /I3: events of an aggregate that are out of order/,
  },
  {
    name: 'row-xmin',
    says: "the row's own xmin instead of the top-level transaction",
    patches: [
      step(
        'pg_visible_in_snapshot(a.xid, upper) and not pg_visible_in_snapshot(a.xid, lower)',
        `pg_visible_in_snapshot(a.xmin::text::xid8, upper) and not pg_visible_in_snapshot(a.xmin::text::xid8, lower)`,
      ),
      step(lateBranch, lateBranch.replace('b.xid', 'b.xmin::text::xid8')),
    ],
    caughtBy: byXid(numbering.savepointRollback),
    red: /events that survive savepoints/,
  },
  {
    name: 'own-xid-unchecked',
    says: 'a step inside a transaction that has written',
    patches: [guard('if pg_current_xact_id_if_assigned() is not null then')],
    caughtBy: stepping.stepInWriter,
    red: /instead of rejecting/,
  },
  {
    name: 'cache-unchecked',
    says: 'ids handed out in blocks',
    patches: [
      guard(
        `if (select s.seqcache from pg_catalog.pg_sequence s where s.seqrelid = 'outbox.event_id'::regclass) <> 1 then`,
      ),
    ],
    caughtBy: stepping.sequenceCache,
    red: /a step with cached ids/,
  },
  {
    name: 'async-step',
    says: 'a step with synchronous_commit = off',
    patches: [step(`perform set_config('synchronous_commit', 'on', true);`, '')],
    caughtBy: cost.flushLsnAfterStep,
    red: /synchronous_commit of a step/,
  },
  {
    name: 'lock-ignored',
    says: 'outbox.lock does nothing',
    patches: [
      {
        file: 'routines/emit.sql',
        find: 'perform pg_advisory_xact_lock(1212370244, h);',
        replace: 'null;',
      },
    ],
    caughtBy: fresh.stalePayloadLocked,
    red: /it never blocked/,
  },
  {
    name: 'payload-not-loaded',
    says: "load gives the event's payload",
    patches: [
      {
        file: 'src/flow/deliver.ts',
        find: 'entry.event = withRow(entry.event, rows.get(entry.event.aggregateId))',
        replace: 'rows.get(entry.event.aggregateId)',
      },
    ],
    caughtBy: fresh.stalePayloadLoaded,
    red: /loaded at delivery/,
  },
  {
    name: 'install-stops-numbering',
    says: 'an install of the search engine takes the lock of the numbering',
    patches: [{ file: 'src/sinks/search/postgres/schema.ts', find: 'LOCK = 4841297202', replace: 'LOCK = 4841297201' }],
    caughtBy: stepping.besideInstall,
    red: /a step beside an install/,
  },
]
