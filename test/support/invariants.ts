// The invariants of the engine as SQL that must count nothing. Tests name the ones that apply:
// `await holds(db, 'I1', 'I3', 'I5')`. The workload's side (tables in schema `chaos`) is optional.

import { expect } from 'vitest'

export type Asks = {
  query(sql: string, params?: unknown[]): Promise<Record<string, unknown>[]>
}

export type Invariant = 'I1' | 'I2' | 'I3' | 'I5' | 'I7' | 'I8' | 'I9'

type Check = { readonly says: string; readonly sql: string }

/** The newest step; while its window is still being numbered, only the one before is finished. */
const finished = `(select coalesce(previous, snapshot) from outbox.step order by id desc limit 1)`

const checks: Record<Invariant, readonly Check[]> = {
  I1: [
    {
      says: 'committed events that are neither in the log nor scheduled',
      sql: `select count(*) from outbox.event e, outbox.setting t
             where e.id > t.fenced_id and pg_visible_in_snapshot(e.xid, ${finished})
               and not exists (select from outbox.log l where l.event_id = e.id)
               and not exists (select from outbox.scheduled s where s.event_id = e.id)`,
    },
  ],
  I2: [
    {
      says: 'transactions of the workload whose events are not exactly the ones it counted',
      sql: `select count(*) from (select payload->>'tx' as tx, count(*) as n from outbox.event group by 1) e
              full join chaos.tx t using (tx) where e.n is distinct from t.events`,
    },
  ],
  I3: [
    {
      // `v` is the true order of changes, made by a row lock; events without one are only
      // compared by id. A scheduled event is numbered when it is due, so its id proves nothing.
      says: 'events of an aggregate that are out of order in the log',
      sql: `select count(*) from (
              select (e.payload->>'v')::bigint as v, e.id, lag((e.payload->>'v')::bigint) over w as v0, lag(e.id) over w as id0
                from outbox.log l join outbox.event e on e.id = l.event_id where e.not_before is null
              window w as (partition by e.aggregate_type, e.aggregate_id order by l.pos)) t
             where v <> coalesce(v0, 0) + 1 or id < id0`,
    },
  ],
  I5: [
    {
      says: 'holes in the positions of an epoch',
      sql: `select coalesce(sum(holes), 0) from (
              select max(pos) - min(pos) + 1 - count(*) as holes from outbox.log group by pos >> 32) t`,
    },
    {
      says: 'events with more than one position',
      sql: 'select count(*) - count(distinct event_id) from outbox.log',
    },
    {
      says: 'positions between the newest step and the end of the log',
      sql: `select coalesce((select pos from outbox.step order by id desc limit 1), 0) - coalesce(max(pos), 0)
              from outbox.log having count(*) > 0`,
    },
    {
      says: 'aggregates in more than one lane',
      sql: `select count(*) from (select from outbox.log l join outbox.event e on e.id = l.event_id
              group by e.aggregate_type, e.aggregate_id having count(distinct l.lane) > 1) t`,
    },
  ],
  I7: [
    {
      says: 'fences or cursors that went back (see auditLanes)',
      sql: `select count(*) from (select a.*, lag(fence) over w as fence0, lag(pos) over w as pos0
              from chaos.lane_audit a window w as (partition by subscription, lane order by n)) t
             where fence < fence0 or (pos < pos0 and fence = fence0)`,
    },
    {
      says: 'delivery rows above the cursor of their lane',
      sql: `select count(*) from outbox.delivery d where d.pos > (select c.pos from outbox.cursor c
             where c.subscription = d.subscription and c.lane = d.lane order by c.fence desc, c.pos desc limit 1)`,
    },
  ],
  I8: [
    {
      says: 'deliveries that are still open',
      sql: `select (select count(*) from (select distinct on (c.subscription, c.lane) c.subscription, c.lane, c.pos from outbox.cursor c
                      order by c.subscription, c.lane, c.fence desc, c.pos desc) c
                     join outbox.subscription s on s.name = c.subscription
                     join outbox.log l on l.pos > c.pos and (s.lanes = 1 or l.lane = c.lane))
                 + (select count(*) from outbox.delivery where state in ('pending', 'retrying', 'sending'))`,
    },
  ],
  I9: [
    {
      says: 'rows of event and log that were updated or deleted',
      sql: `select coalesce(sum(s.n_tup_upd + s.n_tup_del), 0) from pg_stat_user_tables s
              join pg_inherits i on i.inhrelid = s.relid
             where i.inhparent in ('outbox.event'::regclass, 'outbox.log'::regclass)`,
    },
  ],
}

/** What each check counts, by its words; empty when all of them hold. */
export async function violations(db: Asks, ...names: readonly Invariant[]): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const name of names) {
    for (const { says, sql } of checks[name]) {
      const [row] = await db.query(sql)
      const count = Number(Object.values(row ?? { count: 0 })[0])
      if (count !== 0) found[`${name}: ${says}`] = count
    }
  }
  return found
}

export async function holds(db: Asks, ...names: readonly Invariant[]): Promise<void> {
  const found = await violations(db, ...names)
  expect(found, Object.keys(found).join('; ')).toEqual({})
}

/** I6: the state a fake sink holds (aggregate id → version) is that of the workload's rows. */
export async function holdsOutside(db: Asks, outside: ReadonlyMap<string, bigint | number | string>): Promise<void> {
  const rows = await db.query('select id, version::text from chaos.row where version > 0')
  const inside = Object.fromEntries(rows.map(({ id, version }) => [id, version]))
  const held = Object.fromEntries([...outside].map(([id, version]) => [id, String(version)]))
  expect(held, 'I6: the outside equals the inside').toEqual(inside)
}

/** The workload's own tables: written in the same transaction as the events. */
export async function installWorkload(db: Asks): Promise<void> {
  await db.query(`create schema if not exists chaos;
    create table if not exists chaos.tx  (tx text primary key, events int not null);
    create table if not exists chaos.row (id text primary key, version bigint not null default 0);`)
}

/** Before I7: copies every cursor and every change of a lane, with who wrote it. */
export async function auditLanes(db: Asks): Promise<void> {
  await db.query(`create schema if not exists chaos;
    create table chaos.lane_audit (n bigint generated always as identity, subscription text, lane smallint,
      fence bigint, owner text, pos bigint, by text default current_setting('application_name'));
    create function chaos.note_cursor() returns trigger language plpgsql as $$ begin
      insert into chaos.lane_audit (subscription, lane, fence, pos) values (new.subscription, new.lane, new.fence, new.pos);
      return null; end $$;
    create function chaos.note_lane() returns trigger language plpgsql as $$ begin
      insert into chaos.lane_audit (subscription, lane, fence, owner, pos)
      select new.subscription, new.lane, new.fence, new.owner, c.pos from outbox.cursor_of(new.subscription, new.lane) c;
      return null; end $$;
    create trigger note_cursor after insert on outbox.cursor for each row execute function chaos.note_cursor();
    create trigger note_lane after update on outbox.lane for each row execute function chaos.note_lane();`)
}
