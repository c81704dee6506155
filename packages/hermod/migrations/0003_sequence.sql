-- sequence: number what committed, exactly, by comparing two snapshots (docs/guarantees.md says why).
--
--   first piece:  by id above the ids handed out before the lower snapshot, and by xid who was in progress then
--   next pieces:  by id, above the last one numbered
--   ┌─ lower snapshot ────────── window ───────────── upper snapshot ─┐
--   every event visible in `upper` and not in `lower` is numbered once, in order of id

-- Who this database is: what a restore or a failover changes.
create function outbox.identity(out system_identifier bigint, out database oid, out timeline integer)
language plpgsql stable as $$
begin
  -- A statement of its own: privileges are checked when a statement starts, whatever its CASE would choose.
  if has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    select c.system_identifier into system_identifier from pg_catalog.pg_control_system() c;
  end if;
  select d.oid, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer into database, timeline
    from pg_catalog.pg_database d where d.datname = current_database();
end $$;

-- The same as text, remembered by the session: a server that may write keeps its identity and its timeline until it is
-- started again, and asking costs a fifth of a small step.
create function outbox.remember_identity() returns text
language sql as $$
  select set_config('outbox.identity', concat_ws(' ', coalesce(i.system_identifier::text, '-'), i.database, i.timeline), false) from outbox.identity() i
$$;

-- Refuses where a step could number wrongly: another isolation level, a standby, a sequence that hands out ids in blocks.
create function outbox.assert_sequencer() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'HM011', message = 'HMD_ISOLATION: a step runs under READ COMMITTED only';
  end if;
  -- A transaction's own id is in no snapshot it takes: the step would count it as finished, and what it emits later be lost.
  if pg_current_xact_id_if_assigned() is not null then
    raise exception using errcode = 'HM011', message = 'HMD_ISOLATION: a step runs in a transaction that has not written yet';
  end if;
  if pg_is_in_recovery() then
    raise exception using errcode = 'HM012', message = 'HMD_STANDBY: this server is a standby; connect to the primary';
  end if;
  if (select s.seqcache from pg_catalog.pg_sequence s where s.seqrelid = 'outbox.event_id'::regclass) <> 1 then
    raise exception using errcode = 'HM013',
      message = 'HMD_SEQUENCE_CACHE: ids are not handed out in order; run: alter sequence outbox.event_id cache 1';
  end if;
end $$;

-- The last event id handed out. By this function, which locks the sequence's page: a plain select of it may see the value
-- 32 ahead that nextval() writes there for a moment while it logs, and ids that nobody has would be taken for handed out.
create function outbox.last_id() returns bigint
language sql volatile
return coalesce(pg_sequence_last_value('outbox.event_id'), 0);

-- The code of a pair (type, aggregate type), given to it when it is met for the first time. Past 32,767 pairs it is 0, and
-- filters look at the event itself.
create function outbox.kind_code(of_type text, of_aggregate_type text) returns smallint
language plpgsql as $$
declare
  found smallint;
begin
  select k.code into found from outbox.kind k where k.type = of_type and k.aggregate_type = of_aggregate_type;
  if found is null then
    insert into outbox.kind (code, type, aggregate_type)
    select case when coalesce(max(k.code), 0) < 32767 then coalesce(max(k.code), 0) + 1 else 0 end, of_type, of_aggregate_type from outbox.kind k
    returning code into found;
  end if;
  return found;
end $$;

-- The event at a position: one probe a lane.
create function outbox.event_at(at_pos bigint, lane_count smallint) returns bigint
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off as $$
  select g.event_id from generate_series(0, lane_count - 1) i join outbox.log g on g.lane = i and g.pos = at_pos
$$;

-- The first piece of a window: one statement that streams from the indexes into the log, so that an event is copied once;
-- planned under the settings of `sequence`. Ids above `floor` were handed out after the lower snapshot was about to be taken.
-- Whoever has an id up to it and was in progress then is `late` (listed in that snapshot), or has an xid from its xmax on (it
-- lists none of these), and below `below`, which was assigned after `floor` was read. `id + 0`: the planner must not walk the
-- primary key for the few of them.
create function outbox.number_first(
  lower pg_snapshot, upper pg_snapshot, late xid8[], floor bigint, below xid8, fenced bigint, piece integer,
  base bigint, lane_count smallint, due timestamptz,
  out numbered integer, out last_id bigint, out lanes smallint[], out kinds smallint[])
language plpgsql as $$
begin
  with put as (
  insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
  select base + row_number() over (order by h.id), h.id, h.hash, h.bytes, outbox.lane_of(h.hash, lane_count), coalesce(k.code, outbox.kind_code(h.type, h.aggregate_type))
    from (select e.id, e.type, e.aggregate_type, e.bytes, outbox.hash(e.aggregate_type, e.aggregate_id) as hash
            from (select w.id, w.type, w.aggregate_type, w.aggregate_id, w.bytes from (
                    (select a.* from outbox.event a
                      where a.id > greatest(floor, fenced) and (a.not_before is null or a.not_before <= due)
                        and pg_visible_in_snapshot(a.xid, upper) and not pg_visible_in_snapshot(a.xid, lower)
                      order by a.id limit piece)
                    union all
                    select b.* from outbox.event b where b.xid = any (late) and b.id + 0 <= floor
                    union all
                    select c.* from outbox.event c where c.xid >= pg_snapshot_xmax(lower) and c.xid < below and c.id + 0 <= floor
                       and pg_visible_in_snapshot(c.xid, upper)) w
                   where w.id + 0 > fenced and (w.not_before is null or w.not_before <= due)
                   order by w.id limit piece) e
           order by e.id offset 0) h  -- hashed once, after the limit; the order is told on, or all would be sorted again
    left join outbox.kind k on k.type = h.type and k.aggregate_type = h.aggregate_type
  returning event_id, lane, kind)
  select count(*), max(p.event_id), array_agg(distinct p.lane), array_agg(distinct p.kind) into numbered, last_id, lanes, kinds from put p;
end $$;

-- Its next pieces, by id above the last one numbered.
create function outbox.number_next(
  lower pg_snapshot, upper pg_snapshot, reached bigint, piece integer,
  base bigint, lane_count smallint, due timestamptz, out numbered integer, out last_id bigint)
language plpgsql as $$
begin
  insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
  select base + row_number() over (order by h.id), h.id, h.hash, h.bytes, outbox.lane_of(h.hash, lane_count), coalesce(k.code, outbox.kind_code(h.type, h.aggregate_type))
    from (select e.id, e.type, e.aggregate_type, e.bytes, outbox.hash(e.aggregate_type, e.aggregate_id) as hash
            from (select w.id, w.type, w.aggregate_type, w.aggregate_id, w.bytes from outbox.event w
                   where w.id > reached and (w.not_before is null or w.not_before <= due)
                     and pg_visible_in_snapshot(w.xid, upper) and not pg_visible_in_snapshot(w.xid, lower)
                   order by w.id limit piece) e
           order by e.id offset 0) h
    left join outbox.kind k on k.type = h.type and k.aggregate_type = h.aggregate_type;
  get diagnostics numbered = row_count;
  if numbered = piece then
    last_id := outbox.event_at(base + numbered, lane_count);
  end if;
end $$;

-- Files the events of a window that may not be delivered yet. They have an index of their own: mostly there are none.
create function outbox.file_scheduled(lower pg_snapshot, upper pg_snapshot, late xid8[], fenced bigint, due timestamptz) returns integer
language plpgsql as $$
declare
  filed integer;
begin
  insert into outbox.scheduled (due, event_id)
  select w.not_before, w.id from (
    select a.id, a.not_before from outbox.event a
     where a.not_before is not null and a.xid >= pg_snapshot_xmax(lower) and a.xid < pg_snapshot_xmax(upper) and pg_visible_in_snapshot(a.xid, upper)
    union all
    select b.id, b.not_before from outbox.event b where b.not_before is not null and b.xid = any (late)) w
   where w.id + 0 > fenced and w.not_before > file_scheduled.due;
  get diagnostics filed = row_count;
  return filed;
end $$;

-- Scheduled events that are due get their positions now: lanes, order and retention need no exception.
create function outbox.number_due(
  after_at timestamptz, after_id bigint, now timestamptz, piece integer, base bigint, lane_count smallint,
  out picked integer, out numbered integer, out last_at timestamptz, out last_id bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off as $$
begin
  with due as materialized (
    select s.due, s.event_id from outbox.scheduled s
     where (s.due, s.event_id) > (after_at, after_id) and s.due <= now
     order by s.due, s.event_id limit piece
  ), gone as (
    delete from outbox.scheduled s using due d where s.due = d.due and s.event_id = d.event_id
  ), logged as (
    insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
    select base + row_number() over (order by d.due, d.event_id), e.id, h.hash, e.bytes, outbox.lane_of(h.hash, lane_count), coalesce(k.code, outbox.kind_code(e.type, e.aggregate_type))
      from due d
      join outbox.event e on e.id = d.event_id
      cross join lateral (select outbox.hash(e.aggregate_type, e.aggregate_id) as hash) h
      left join outbox.kind k on k.type = e.type and k.aggregate_type = e.aggregate_type
    returning pos
  )
  select (select count(*) from due), (select count(*) from logged), d.due, d.event_id into picked, numbered, last_at, last_id
    from due d order by d.due desc, d.event_id desc limit 1;
  picked := coalesce(picked, 0);
  numbered := coalesce(numbered, 0);
end $$;

-- The log is written by the sequencer only, so it makes its own partition when upkeep was not there in time.
create function outbox.ensure_log_partition(from_pos bigint, to_pos bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  start_at bigint := from_pos;
  leaf_end bigint;
begin
  while start_at <= to_pos loop
    select max(p.to_value) into leaf_end from outbox.partition p
     where p.parent = 'log' and p.from_value <= start_at and p.to_value > start_at;
    if leaf_end is null then
      -- Up to the next leaf there is, which upkeep may have added ahead.
      select coalesce(min(p.from_value), start_at + 1000000) into leaf_end from outbox.partition p
       where p.parent = 'log' and p.from_value > start_at and p.from_value < start_at + 1000000;
      perform outbox.add_partition('log', start_at, leaf_end);
    end if;
    start_at := leaf_end;
  end loop;
  update outbox.setting t set covered = start_at where t.covered <> start_at;
end $$;

-- A new timeline: a tail the outside has seen may be lost. Positions and fences move where none of the lost ones can be.
create function outbox.start_epoch(epoch integer) returns bigint
language plpgsql as $$
declare
  base bigint := epoch::bigint << 32;
begin
  -- One by one in the order of settle, which may be at work: two orders would deadlock.
  perform from outbox.lane l order by l.subscription, l.lane for update;
  update outbox.lane l set owner = null, lease_until = '-infinity', parked = null, fence = greatest(((l.fence >> 32) + 1) << 32, base);
  return base;
end $$;

-- One step. No row back: another session is at it. Safe to call from any number of workers, also behind a pooler.
create function outbox.sequence(piece integer default 10000)
returns table (numbered integer, head bigint, more boolean, new_epoch boolean, lanes smallint[], kinds smallint[])
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_mergejoin = off set enable_bitmapscan = off set jit = off as $$
declare
  last    outbox.step;
  setting outbox.setting;
  ids     record;
  me      text[];
  cur     pg_snapshot;
  lower   pg_snapshot;
  now     timestamptz := outbox.clock();
  part    record;
  due     record;
  pos     bigint;
  due_at  timestamptz;
  late    xid8[];
  filed   integer := 0;
  open    boolean;
  continued boolean;
begin
  if not pg_try_advisory_xact_lock(4841297201) then
    return;
  end if;
  -- What is wrong is put into words by whoever refuses; here and below it is only noticed, since that costs less.
  if current_setting('transaction_isolation') <> 'read committed' or pg_current_xact_id_if_assigned() is not null or pg_is_in_recovery() then
    perform outbox.assert_sequencer();
  end if;
  -- Lock first, then look, in separate statements: a snapshot taken with the lock may be older than what it protects.
  select * into last from outbox.step order by id desc limit 1;
  select * into setting from outbox.setting;
  -- Before the snapshot: whoever takes an id after this is found by it, whoever took one before has its xid already.
  select q.seqcache as cache, outbox.last_id() as last into ids
    from pg_catalog.pg_sequence q where q.seqrelid = 'outbox.event_id'::regclass;
  select pg_current_snapshot() into cur;
  me := string_to_array(coalesce(nullif(current_setting('outbox.identity', true), ''), outbox.remember_identity()), ' ', '-');
  if ids.cache <> 1 then
    perform outbox.assert_sequencer();
  end if;
  if last.id is null or last.system_identifier <> me[1]::bigint or last.database <> me[2]::oid
     or pg_snapshot_xmax(cur) < pg_snapshot_xmax(last.snapshot) or ids.last < greatest(setting.fenced_id, last.last_id) then
    perform outbox.assert_same_database(last, me[1]::bigint, me[2]::oid, cur);
  end if;

  new_epoch := last.timeline <> me[3]::integer;
  pos := coalesce(last.pos, 0);
  if new_epoch then
    -- Recovered twice from one backup: the second has a higher timeline, and must not reuse the positions of the first.
    last.epoch := greatest(last.epoch + 1, me[3]::integer - 1);
    pos := outbox.start_epoch(last.epoch);
  end if;
  new_epoch := coalesce(new_epoch, false);

  -- Asking the catalogue costs a fifth of a small step; the answer holds until the head comes near its end.
  if pos + 2 * piece >= setting.covered then
    perform outbox.ensure_log_partition(pos + 1, pos + 2 * piece);
  end if;

  open := last.previous is not null;
  continued := open;
  lower := case when open then last.previous else coalesce(last.snapshot, '3:3:') end;
  cur := case when open then last.snapshot else cur end;
  -- One time for the whole window tells what is filed from what is numbered.
  due_at := case when open then last.filed_after else greatest(now, last.due_at) end;
  if open then
    select n.*, null::smallint[] as lanes, null::smallint[] as kinds into part from outbox.number_next(lower, cur, last.reached, piece, pos, setting.lanes, due_at) n;
  elsif cur::text <> lower::text then
    late := array(select x from pg_snapshot_xip(lower) x where pg_visible_in_snapshot(x, cur));
    filed := outbox.file_scheduled(lower, cur, late, setting.fenced_id, due_at);
    select * into part from outbox.number_first(lower, cur, late, coalesce(last.last_id, 0), coalesce(last.xid, '0'), setting.fenced_id, piece, pos, setting.lanes, due_at);
  else
    select 0 as numbered, null::bigint as last_id, null::smallint[] as lanes, null::smallint[] as kinds into part;
  end if;
  pos := pos + part.numbered;
  open := part.numbered = piece;
  if open then
    select 0 as picked, 0 as numbered, last.due_at as last_at, last.due_id as last_id into due;
  elsif not exists (select from outbox.scheduled s where s.due <= due_at) then
    select 0 as picked, 0 as numbered, null::timestamptz as last_at, null::bigint as last_id into due;
  else
    select * into due from outbox.number_due(coalesce(last.due_at, '-infinity'), coalesce(last.due_id, 0), due_at, piece, pos, setting.lanes);
  end if;
  pos := pos + due.numbered;

  numbered := part.numbered + due.numbered;
  head := pos;
  more := open or due.picked = piece;
  -- An empty window is stored too, at most once a second: else every idle poll would read it again.
  if part.numbered > 0 or filed > 0 or due.picked > 0 or new_epoch or last.previous is not null or last.id is null
     or (cur::text <> lower::text and (last.at < now - interval '1 second' or last.at > now)) then
    perform set_config('synchronous_commit', 'on', true);
    insert into outbox.step (at, snapshot, last_id, xid, previous, reached, filed_after, pos, due_at, due_id, epoch, timeline, database, system_identifier)
    values (now, cur, case when continued then last.last_id else ids.last end, case when continued then last.xid else pg_current_xact_id() end, case when open then lower end, case when open then part.last_id end, case when open then due_at end, pos,
      coalesce(case when more then due.last_at else due_at end, '-infinity'),
      coalesce(case when more then due.last_id else 9223372036854775807 end, 0),
      coalesce(last.epoch, 0), me[3]::integer, me[2]::oid, me[1]::bigint);
    -- Steps are the time index of the log: the last one of each second is kept.
    if date_trunc('second', last.at) = date_trunc('second', now) then
      delete from outbox.step where id = last.id;
    end if;
  end if;
  -- The end of a window in pieces: what committed since it was opened has not been looked at.
  more := more or last.previous is not null;
  -- Whom it concerns, where that is few: a worker then reads only these lanes' subscriptions.
  if numbered between 1 and 100 and due.numbered = 0 then
    lanes := part.lanes;
    kinds := part.kinds;
  end if;
  return next;
end $$;

-- The restore guard: xids of another cluster mean nothing here, so numbering by them could lose events silently.
create function outbox.assert_same_database(last outbox.step, system_identifier bigint, database oid, cur pg_snapshot) returns void
language plpgsql as $$
begin
  if last.id is null then
    if exists (select from outbox.event e where e.xid >= pg_snapshot_xmax(cur) and e.xid >= pg_snapshot_xmax(pg_current_snapshot())) then
      raise exception using errcode = 'HM015', message = 'HMD_RESTORED: events of another cluster are here but no step; run: hermod rebase';
    elsif exists (select from outbox.log) then
      raise exception using errcode = 'HM015', message = 'HMD_RESTORED: a log is here but no step; run: hermod rebase';
    end if;
  elsif last.system_identifier <> system_identifier or last.database <> database then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: this database was restored or moved; run: hermod rebase';
  elsif pg_snapshot_xmax(cur) < pg_snapshot_xmax(last.snapshot) then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: transaction ids went backwards; run: hermod rebase';
  end if;
  if outbox.last_id() < greatest((select st.fenced_id from outbox.setting st), last.last_id) then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: the id sequence lies behind restored events; run: hermod rebase';
  end if;
end $$;
