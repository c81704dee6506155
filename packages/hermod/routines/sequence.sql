-- sequence: number what committed, exactly, by comparing two snapshots (docs/guarantees.md says why).
--
--   ┌─ lower snapshot ────────── window ───────────── upper snapshot ─┐
--   every event visible in `upper` and not in `lower` is numbered once, in order of id
--
--   few ids:      by id, above an id that is lower than any id in the window
--   first piece:  by id above the ids given out before the lower snapshot, and by xid for those in progress then
--   next pieces:  by id, above the last one numbered
--
-- The four inserts into the log compute hash, lane and kind in the same way. Each is one statement that streams from
-- an index into the log: a function or a view around what they share would cost every event a call or a copy.

-- The last event id given out. This function locks the sequence's page. A plain select may see a value 32 too high,
-- which nextval() writes there for a moment while it logs: ids that nobody has would count as given out.
create or replace function outbox.last_id() returns bigint
language sql volatile
return coalesce(pg_sequence_last_value('outbox.event_id'), 0);

-- Largest id range that is read by id alone: reading some events again costs less than looking up transactions in
-- progress by xid.
create or replace function outbox.near_ids() returns integer
language sql immutable parallel safe
return 1000;

-- Nothing is lost: an id lower than any id in the window, from the steps that are kept; null: none is known.
--   1. A transaction has its xid before it takes an id (emit_keyed sees to it; an insert does it by itself).
--   2. A step reads the last id given out, and writes only after that: its own xid, `step.xid`, is the younger one. So
--      a transaction whose xid is not below `step.xid` took all its ids after that look: they are above `step.last_id`.
--   3. A transaction of the window was in progress at the lower snapshot (listed in it, or with an xid from its xmax
--      on), or began later. So its xid is not below `oldest`: the lowest xid listed there that has committed since, or
--      the xmax.
-- Hence the newest step with `xid` <= `oldest` gives the floor. Xids of another epoch mean nothing here.
create or replace function outbox.window_floor(last outbox.step, oldest xid8) returns table (floor bigint)
language sql stable
begin atomic
  select s.last_id from outbox.step s
   where s.id > (last).id - 40 and s.epoch = (last).epoch and s.xid <= oldest
   order by s.id desc limit 1;
end;

-- Numbers a whole window of few ids: what may be delivered by `limit_at` gets a position, the rest is filed as
-- scheduled.
create or replace function outbox.number_near(
  lower pg_snapshot, upper pg_snapshot, floor bigint, base bigint, lane_count smallint, limit_at timestamptz,
  out numbered integer, out lanes smallint[], out kinds smallint[], out filed integer)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  with w as materialized (
    select e.id, e.type, e.aggregate_type, e.bytes, e.not_before,
           outbox.hash(e.aggregate_type, e.aggregate_id) as hash
      from outbox.event e
     where e.id > floor and pg_visible_in_snapshot(e.xid, upper) and not pg_visible_in_snapshot(e.xid, lower)
     order by e.id
  ), later as (
    insert into outbox.scheduled (due, event_id) select w.not_before, w.id from w where w.not_before > limit_at
    returning event_id
  ), put as (
    insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
    select base + row_number() over (order by w.id), w.id, w.hash, w.bytes, outbox.lane_of(w.hash, lane_count),
           coalesce(k.code, outbox.kind_code(w.type, w.aggregate_type))
      from w left join outbox.kind k on k.type = w.type and k.aggregate_type = w.aggregate_type
     where w.not_before is null or w.not_before <= limit_at
    returning lane, kind
  )
  select count(*), array_agg(distinct p.lane), array_agg(distinct p.kind), (select count(*) from later)
    into numbered, lanes, kinds, filed from put p;
end $$;

-- The first piece of a window: one statement that streams from the indexes into the log, so that an event is copied
-- once; planned under the settings of `sequence`. Ids above `after`, the last one given out before the lower snapshot
-- was taken, are found by id. Lower ones belong to transactions that were in progress then: `late` ones (listed in that
-- snapshot), and those with an xid from its xmax on and below `below`, which was assigned after `after` was read.
-- `id + 0`: the planner must not walk the primary key for these few events.
create or replace function outbox.number_first(
  lower pg_snapshot, upper pg_snapshot, after bigint, late xid8[], below xid8, fenced bigint, piece integer,
  base bigint, lane_count smallint, limit_at timestamptz,
  out numbered integer, out reached bigint, out lanes smallint[], out kinds smallint[])
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- A new kind would be looked up once for each of its events in this statement; usually all have the first one's kind.
  perform outbox.kind_code(e.type, e.aggregate_type) from (
    select a.type, a.aggregate_type from outbox.event a where a.id > greatest(after, fenced) order by a.id limit 1) e;
  with put as (
  insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
  select base + row_number() over (order by h.id), h.id, h.hash, h.bytes, outbox.lane_of(h.hash, lane_count),
         coalesce(k.code, outbox.kind_code(h.type, h.aggregate_type))
    from (select e.id, e.type, e.aggregate_type, e.bytes, outbox.hash(e.aggregate_type, e.aggregate_id) as hash
            from (select w.id, w.type, w.aggregate_type, w.aggregate_id, w.bytes from (
                    (select a.* from outbox.event a
                      where a.id > greatest(after, fenced) and (a.not_before is null or a.not_before <= limit_at)
                        and pg_visible_in_snapshot(a.xid, upper) and not pg_visible_in_snapshot(a.xid, lower)
                      order by a.id limit piece)
                    union all
                    select b.* from outbox.event b where b.xid = any (late) and b.id + 0 <= after
                    union all
                    select c.* from outbox.event c where c.xid >= pg_snapshot_xmax(lower) and c.xid < below
                       and c.id + 0 <= after and pg_visible_in_snapshot(c.xid, upper)) w
                   where w.id + 0 > fenced and (w.not_before is null or w.not_before <= limit_at)
                   order by w.id limit piece) e
           -- hashed once, after the limit; `order by` is repeated, or everything would be sorted again
           order by e.id offset 0) h
    left join outbox.kind k on k.type = h.type and k.aggregate_type = h.aggregate_type
  returning event_id, lane, kind)
  select count(*), max(p.event_id), array_agg(distinct p.lane), array_agg(distinct p.kind)
    into numbered, reached, lanes, kinds from put p;
end $$;

-- The next pieces of a window, by id above the last one numbered. What the first piece returns of its lanes and kinds
-- would cost these an eighth of their time.
create or replace function outbox.number_next(
  lower pg_snapshot, upper pg_snapshot, after bigint, piece integer, base bigint, lane_count smallint,
  limit_at timestamptz, out numbered integer, out reached bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
  select base + row_number() over (order by h.id), h.id, h.hash, h.bytes, outbox.lane_of(h.hash, lane_count),
         coalesce(k.code, outbox.kind_code(h.type, h.aggregate_type))
    from (select e.id, e.type, e.aggregate_type, e.bytes, outbox.hash(e.aggregate_type, e.aggregate_id) as hash
            from (select w.id, w.type, w.aggregate_type, w.aggregate_id, w.bytes from outbox.event w
                   where w.id > after and (w.not_before is null or w.not_before <= limit_at)
                     and pg_visible_in_snapshot(w.xid, upper) and not pg_visible_in_snapshot(w.xid, lower)
                   order by w.id limit piece) e
           order by e.id offset 0) h
    left join outbox.kind k on k.type = h.type and k.aggregate_type = h.aggregate_type;
  get diagnostics numbered = row_count;
  if numbered = piece then
    reached := (select g.event_id from generate_series(0, lane_count - 1) i
                  join outbox.log g on g.lane = i and g.pos = base + piece);
  end if;
end $$;

-- Files the events of a window that may not be delivered yet. They have an index of their own; usually there are none.
create or replace function outbox.file_scheduled(
  lower pg_snapshot, upper pg_snapshot, late xid8[], fenced bigint, limit_at timestamptz) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  filed integer;
begin
  insert into outbox.scheduled (due, event_id)
  select w.not_before, w.id from (
    select a.id, a.not_before from outbox.event a
     where a.not_before is not null and a.xid >= pg_snapshot_xmax(lower) and a.xid < pg_snapshot_xmax(upper)
       and pg_visible_in_snapshot(a.xid, upper)
    union all
    select b.id, b.not_before from outbox.event b where b.not_before is not null and b.xid = any (late)) w
   where w.id + 0 > fenced and w.not_before > limit_at;
  get diagnostics filed = row_count;
  return filed;
end $$;

-- Numbers the next part of the window after `last`. `unfinished`: a piece was full; the next step goes on with this
-- window.
create or replace function outbox.number_window(
  last outbox.step, setting outbox.setting, lower pg_snapshot, upper pg_snapshot, given_out bigint, piece integer,
  limit_at timestamptz, base bigint, out numbered integer, out reached bigint, out lanes smallint[],
  out kinds smallint[], out filed integer, out unfinished boolean)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  fenced bigint := setting.fenced_id;
  late   xid8[];   -- in progress at the lower snapshot, committed since; in order, as a snapshot lists them
  floor  bigint;
begin
  filed := 0;
  if last.previous is not null then
    select p.* into numbered, reached
      from outbox.number_next(lower, upper, last.reached, piece, base, setting.lanes, limit_at) p;
  else
    late := array(select x from pg_snapshot_xip(lower) x where pg_visible_in_snapshot(x, upper));
    select f.floor into floor from outbox.window_floor(last, least(pg_snapshot_xmax(lower), late[1])) f;
    floor := greatest(floor, fenced);
    if given_out - floor <= least(outbox.near_ids(), piece) then
      select n.numbered, n.lanes, n.kinds, n.filed, false into numbered, lanes, kinds, filed, unfinished
        from outbox.number_near(lower, upper, floor, base, setting.lanes, limit_at) n;
      return;
    end if;
    filed := outbox.file_scheduled(lower, upper, late, fenced, limit_at);
    select p.* into numbered, reached, lanes, kinds
      from outbox.number_first(lower, upper, coalesce(last.last_id, 0), late, coalesce(last.xid, '0'), fenced, piece,
                               base, setting.lanes, limit_at) p;
  end if;
  unfinished := numbered = piece;
end $$;

-- Gives positions to scheduled events that are due now: so lanes, order and retention need no exception for them.
create or replace function outbox.number_due(
  after_at timestamptz, after_id bigint, limit_at timestamptz, piece integer, base bigint, lane_count smallint,
  out picked integer, out numbered integer, out last_at timestamptz, out last_id bigint)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off as $$
begin
  with due as materialized (
    select s.due, s.event_id from outbox.scheduled s
     where (s.due, s.event_id) > (after_at, after_id) and s.due <= limit_at
     order by s.due, s.event_id limit piece
  ), gone as (
    delete from outbox.scheduled s using due d where s.due = d.due and s.event_id = d.event_id
  ), logged as (
    insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
    select base + row_number() over (order by d.due, d.event_id), e.id, h.hash, e.bytes,
           outbox.lane_of(h.hash, lane_count), coalesce(k.code, outbox.kind_code(e.type, e.aggregate_type))
      from due d
      join outbox.event e on e.id = d.event_id
      cross join lateral (select outbox.hash(e.aggregate_type, e.aggregate_id) as hash) h
      left join outbox.kind k on k.type = e.type and k.aggregate_type = e.aggregate_type
    returning pos
  )
  select (select count(*) from due), (select count(*) from logged), d.due, d.event_id
    into picked, numbered, last_at, last_id
    from due d order by d.due desc, d.event_id desc limit 1;
  picked := coalesce(picked, 0);
  numbered := coalesce(numbered, 0);
end $$;

-- A new timeline: destinations may have seen a tail that is lost here. Positions and fences move above all lost ones.
create or replace function outbox.start_epoch(epoch integer) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  base bigint := epoch::bigint << 32;
begin
  -- One by one in the order of settle, which may run now: two orders would deadlock. Not for long, because all
  -- numbering waits meanwhile. A lane whose row somebody keeps locked stays as it is: its owner goes on, or its lease
  -- runs out, and whoever claims it then moves its fence.
  perform set_config('lock_timeout', '100ms', true);
  begin
    perform from outbox.lane l order by l.subscription, l.lane for update;
  exception when lock_not_available then
    null;
  end;
  -- Calls of the owners may be under way: for the next owners it is a take-over.
  update outbox.lane l set owner = outbox.interrupted(l.owner), lease_until = '-infinity', parked = null,
    fence = greatest(((l.fence >> 32) + 1) << 32, base)
    from (select f.subscription, f.lane from outbox.lane f order by f.subscription, f.lane for update skip locked) f
   where l.subscription = f.subscription and l.lane = f.lane;
  return base;
end $$;

-- One step. No row back: another session is at it. Safe to call from any number of workers, also behind a pooler, each
-- call as a statement of its own: between BEGIN and COMMIT a client that stands still would keep the lock of the
-- numbering. Nothing in it waits for a lock that somebody else may hold: all numbering would wait with it. Should
-- somebody lock a whole table of ours, the step fails after a second and says so, instead of standing still.
-- `known_head`: the highest position the caller has seen here; null: it has seen none. `due_ms`: when the next
-- scheduled event is due; null: none within a minute; 0: some were filed, look again.
create or replace function outbox.sequence(piece integer default 10000, known_head bigint default null)
returns table (
  numbered integer, head bigint, more boolean, new_epoch boolean, lanes smallint[], kinds smallint[], due_ms integer)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '1s'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_mergejoin = off set enable_bitmapscan = off
set jit = off as $$
declare
  now        timestamptz := outbox.clock();
  seen       record;             -- the facts that this step rests on
  last       outbox.step;        -- the step before this one
  setting    outbox.setting;
  me         text[];             -- system identifier, database, timeline
  lower      pg_snapshot;
  upper      pg_snapshot;
  limit_at   timestamptz;        -- what may be delivered only later than this is filed as scheduled
  continued  boolean;            -- the step before left a part of its window
  part       record;             -- what was numbered of the window
  fresh      integer := 0;       -- how many that were
  filed      integer := 0;
  unfinished boolean := false;   -- a part of the window is left
  due        record;             -- what was numbered of the scheduled events
  due_picked integer := 0;       -- how many of these were taken up
  due_fresh  integer := 0;       -- how many of these were numbered
  due_at     timestamptz;        -- up to here scheduled events have been numbered
  due_id     bigint;
begin
  if not pg_try_advisory_xact_lock(4841297201) then
    return;
  end if;

  -- May this session number? Here and below only a cheap check; the function that refuses says what is wrong.
  if current_setting('transaction_isolation') <> 'read committed' or pg_current_xact_id_if_assigned() is not null
     or pg_is_in_recovery() then
    perform outbox.assert_sequencer();
  end if;

  -- The facts. Lock first, then look, in separate statements: a snapshot taken with the lock may be older than what it
  -- protects. Nothing may be written above this statement: our own xid must be younger than `given_out` (window_floor).
  select (select st from outbox.step st order by st.id desc limit 1) as step, t as setting, q.seqcache as cache,
         outbox.last_id() as given_out,
         (select s.due from outbox.scheduled s order by s.due limit 1) as due into seen
    from outbox.setting t join pg_catalog.pg_sequence q on q.seqrelid = 'outbox.event_id'::regclass;
  last := seen.step;
  setting := seen.setting;
  -- A statement of its own, after `given_out` was read: a later id is found by its number; a transaction with a lower
  -- one already has its xid. So this function must be volatile: a stable one has one snapshot, that of its caller.
  upper := pg_current_snapshot();
  me := string_to_array(coalesce(nullif(current_setting('outbox.identity', true), ''), outbox.remember_identity()), ' ',
                        '-');

  -- Is this the database of the step before?
  if seen.cache <> 1 then
    perform outbox.assert_sequencer();
  end if;
  if last.id is null or last.system_identifier <> me[1]::bigint or last.database <> me[2]::oid
     or pg_snapshot_xmax(upper) < pg_snapshot_xmax(last.snapshot)
     or seen.given_out < greatest(setting.fenced_id, last.last_id) then
    perform outbox.assert_same_database(last, me[1]::bigint, me[2]::oid, upper);
  end if;
  head := coalesce(last.pos, 0);
  new_epoch := coalesce(nullif(last.timeline, 0) <> me[3]::integer, false);   -- 0: it could not be seen then
  if new_epoch then
    -- Recovered twice from one backup: the second has a higher timeline, and must not reuse the positions of the first.
    last.epoch := greatest(last.epoch + 1, me[3]::integer - 1);
    head := outbox.start_epoch(last.epoch);
  end if;
  if head < known_head then
    perform outbox.assert_head(last, head, known_head);
  end if;

  -- Room in the log. Asking the catalogue costs a fifth of a small step; the answer is valid until the head comes near
  -- `covered`.
  if head + 2 * piece >= setting.covered then
    perform outbox.ensure_log_partition(head + 1, head + 2 * piece);
  end if;

  -- The window: the one after the step before, or the rest of it. One time for the whole window decides what is filed
  -- and what is numbered. Never earlier than `due_at`, if the clock went back: nobody looks below it for due events.
  continued := last.previous is not null;
  lower := case when continued then last.previous else coalesce(last.snapshot, '3:3:') end;
  upper := case when continued then last.snapshot else upper end;
  -- The clock was ahead when that step was made: what is scheduled is looked through again from its beginning.
  if last.due_at > now + interval '1 minute' and not continued then
    last.due_at := '-infinity';
    last.due_id := 0;
  end if;
  limit_at := case when continued then last.filed_after else greatest(now, last.due_at) end;
  if continued or upper::text <> lower::text then
    part := outbox.number_window(last, setting, lower, upper, seen.given_out, piece, limit_at, head);
    fresh := part.numbered;
    filed := part.filed;
    unfinished := part.unfinished;
    lanes := part.lanes;
    kinds := part.kinds;
  end if;

  -- Scheduled events that are due, once the window is finished.
  due_at := limit_at;
  due_id := 9223372036854775807;   -- all of that moment
  if unfinished then
    due_at := coalesce(last.due_at, '-infinity');
    due_id := coalesce(last.due_id, 0);
  elsif seen.due <= limit_at then
    due := outbox.number_due(coalesce(last.due_at, '-infinity'), coalesce(last.due_id, 0), limit_at, piece,
                             head + fresh, setting.lanes);
    due_picked := due.picked;
    due_fresh := due.numbered;
    if due_picked = piece then
      due_at := due.last_at;
      due_id := due.last_id;
    end if;
  end if;
  numbered := fresh + due_fresh;
  head := head + numbered;

  -- Store it, durably. An empty window is stored too, at most once per second: else every idle poll would read it
  -- again.
  if fresh > 0 or filed > 0 or due_picked > 0 or new_epoch or continued or last.id is null
     or (upper::text <> lower::text and (last.at < now - interval '1 second' or last.at > now)) then
    if current_setting('synchronous_commit') <> 'on' then
      perform set_config('synchronous_commit', 'on', true);
    end if;
    -- Steps are the time index of the log: the last one of each second is kept, and the newest ones, which tell the
    -- next step where to begin.
    with gone as (
      delete from outbox.step s using outbox.step n
       where s.id = last.id - 20 and n.id = s.id + 1 and date_trunc('second', s.at) = date_trunc('second', n.at)
    )
    insert into outbox.step (at, snapshot, last_id, xid, previous, reached, filed_after, pos, due_at, due_id, epoch,
                             timeline, database, system_identifier)
    values (now, upper, case when continued then last.last_id else seen.given_out end,
      case when continued then last.xid else pg_current_xact_id() end, case when unfinished then lower end,
      case when unfinished then part.reached end, case when unfinished then limit_at end, head, due_at, due_id,
      coalesce(last.epoch, 0), coalesce(me[3]::integer, last.timeline, 0), me[2]::oid,
      coalesce(me[1]::bigint, last.system_identifier));
  end if;

  -- What the caller is told. After the last piece of a window: what committed since it was opened was not looked at.
  more := unfinished or due_picked = piece or continued;
  due_ms := case when filed > 0 then 0
    when seen.due <= now then 0
    when seen.due < now + interval '1 minute' then ceil(extract(epoch from seen.due - now) * 1000) end;
  -- Lanes and kinds are told where they are few: a worker then wakes only the subscriptions that listen.
  if due_fresh > 0 or numbered = 0 or cardinality(kinds) > 100 then
    lanes := null;
    kinds := null;
  end if;
  return next;
end $$;
