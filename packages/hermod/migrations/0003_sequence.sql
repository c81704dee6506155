-- sequence: number what committed, exactly, by comparing two snapshots (docs/guarantees.md says why).
--
--   first piece:  by xid, lowest ids first          next pieces:  by id, above the last one numbered
--   ┌─ lower snapshot ────────── window ───────────── upper snapshot ─┐
--   every event visible in `upper` and not in `lower` is numbered once, in order of id

-- Who this database is: what a restore or a failover changes.
create function outbox.identity(out system_identifier bigint, out database oid, out timeline integer)
language sql stable as $$
  select case when has_function_privilege('pg_catalog.pg_control_system()', 'execute')
              then (select c.system_identifier from pg_catalog.pg_control_system() c) end,
         (select d.oid from pg_catalog.pg_database d where d.datname = current_database()),
         ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer
$$;

-- Refuses where a step could number wrongly: another isolation level, a standby, a sequence that hands out ids in blocks.
create function outbox.assert_sequencer() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'HM011', message = 'HMD_ISOLATION: a step runs under READ COMMITTED only';
  end if;
  if pg_is_in_recovery() then
    raise exception using errcode = 'HM012', message = 'HMD_STANDBY: this server is a standby; connect to the primary';
  end if;
  if (select s.seqcache from pg_catalog.pg_sequence s where s.seqrelid = 'outbox.event_id'::regclass) <> 1 then
    raise exception using errcode = 'HM013',
      message = 'HMD_SEQUENCE_CACHE: ids are not handed out in order; run: alter sequence outbox.event_id cache 1';
  end if;
end $$;

-- The next rows of a window, lowest ids first.
create function outbox.window_piece(lower pg_snapshot, upper pg_snapshot, reached bigint, fenced bigint, piece integer)
returns table (id bigint, not_before timestamptz, type text, aggregate_type text, hash integer)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off as $$
declare
  late xid8[];
begin
  if reached is not null then
    return query
      select e.id, e.not_before, e.type, e.aggregate_type, outbox.hash(e.aggregate_type, e.aggregate_id)
        from outbox.event e
       where e.id > greatest(reached, fenced)
         and pg_visible_in_snapshot(e.xid, upper) and not pg_visible_in_snapshot(e.xid, lower)
       order by e.id limit piece;
    return;
  end if;
  -- In progress when the previous window closed, finished now. Their xids lie below xmax(lower).
  late := array(select x from pg_snapshot_xip(lower) x where pg_visible_in_snapshot(x, upper));
  return query
    select e.id, e.not_before, e.type, e.aggregate_type, outbox.hash(e.aggregate_type, e.aggregate_id)
      from (select w.id from (
              select a.id from outbox.event a
               where a.xid >= pg_snapshot_xmax(lower) and a.xid < pg_snapshot_xmax(upper)
                 and pg_visible_in_snapshot(a.xid, upper)
              union all
              select b.id from outbox.event b where b.xid = any (late)) w
             where w.id > fenced
             order by w.id limit piece) p
      join outbox.event e on e.id = p.id
     order by p.id;
end $$;

-- Gives positions to the picked events, files those that may not be delivered yet. Does nothing but report `strangers`
-- when a pair (type, aggregate type) is met for the first time.
create function outbox.number_piece(
  lower pg_snapshot, upper pg_snapshot, reached bigint, fenced bigint, piece integer,
  base bigint, lane_count smallint, due timestamptz,
  out picked integer, out numbered integer, out last_id bigint, out strangers boolean)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_mergejoin = off set jit = off as $$
begin
  with picked_rows as materialized (
    select p.id, p.not_before, p.hash, k.code
      from outbox.window_piece(number_piece.lower, number_piece.upper, number_piece.reached, number_piece.fenced, number_piece.piece) p
      left join outbox.kind k on k.type = p.type and k.aggregate_type = p.aggregate_type
  ), summary as materialized (
    select count(*) as picked, max(p.id) as last_id, count(*) filter (where p.code is null) > 0 as strangers from picked_rows p
  ), filed as (
    insert into outbox.scheduled (due, event_id)
    select p.not_before, p.id from picked_rows p where p.not_before > number_piece.due and not (select s.strangers from summary s)
  ), logged as (
    insert into outbox.log (pos, event_id, hash, lane, kind)
    select number_piece.base + row_number() over (order by p.id), p.id, p.hash, outbox.lane_of(p.hash, lane_count), p.code
      from picked_rows p
     where (p.not_before is null or p.not_before <= number_piece.due) and not (select s.strangers from summary s)
    returning pos
  )
  select s.picked, s.last_id, s.strangers, (select count(*) from logged)
    into picked, last_id, strangers, numbered from summary s;
end $$;

-- Codes for the pairs met for the first time. Past 32,767 of them the code is 0, and filters look at the event itself.
create function outbox.name_kinds(lower pg_snapshot, upper pg_snapshot, reached bigint, fenced bigint, piece integer) returns void
language plpgsql as $$
begin
  insert into outbox.kind (code, type, aggregate_type)
  select case when n.code <= 32767 then n.code else 0 end, n.type, n.aggregate_type
    from (select (select count(*) from outbox.kind) + row_number() over (order by u.type, u.aggregate_type) as code, u.type, u.aggregate_type
            from (select distinct p.type, p.aggregate_type from outbox.window_piece(lower, upper, reached, fenced, piece) p) u
           where not exists (select from outbox.kind k where k.type = u.type and k.aggregate_type = u.aggregate_type)) n;
end $$;

-- Scheduled events that are due get their positions now: lanes, order and retention need no exception.
create function outbox.number_due(
  after_at timestamptz, after_id bigint, now timestamptz, piece integer, base bigint, lane_count smallint,
  out numbered integer, out last_at timestamptz, out last_id bigint)
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
    insert into outbox.log (pos, event_id, hash, lane, kind)
    select base + row_number() over (order by d.due, d.event_id), e.id, h.hash, outbox.lane_of(h.hash, lane_count), coalesce(k.code, 0)
      from due d
      join outbox.event e on e.id = d.event_id
      cross join lateral (select outbox.hash(e.aggregate_type, e.aggregate_id) as hash) h
      left join outbox.kind k on k.type = e.type and k.aggregate_type = e.aggregate_type
    returning pos
  )
  select (select count(*) from logged), d.due, d.event_id into numbered, last_at, last_id
    from due d order by d.due desc, d.event_id desc limit 1;
  numbered := coalesce(numbered, 0);
end $$;

-- The log is written by the sequencer only, so it makes its own partition when upkeep was not there in time.
create function outbox.ensure_log_partition(from_pos bigint, to_pos bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  start_at bigint := from_pos;
  covered  bigint;
begin
  loop
    select max(p.to_value) into covered from outbox.partition p
     where p.parent = 'log' and p.from_value <= start_at and p.to_value > start_at;
    if covered > to_pos then
      return;
    end if;
    if covered is not null then
      start_at := covered;
    end if;
    perform outbox.add_partition('log', start_at, start_at + 1000000);
  end loop;
end $$;

-- A new timeline: a tail the outside has seen may be lost. Positions and fences move where none of the lost ones can be.
create function outbox.start_epoch(epoch integer) returns bigint
language plpgsql as $$
declare
  base bigint := epoch::bigint << 32;
begin
    update outbox.lane set owner = null, lease_until = '-infinity', fence = ((lane.fence >> 32) + 1) << 32;
  return base;
end $$;

-- One step. No row back: another session is at it. Safe to call from any number of workers, also behind a pooler.
create function outbox.sequence(piece integer default 10000)
returns table (numbered integer, head bigint, more boolean, new_epoch boolean)
language plpgsql as $$
declare
  last    outbox.step;
  setting outbox.setting;
  me      record;
  cur     pg_snapshot;
  lower   pg_snapshot;
  now     timestamptz := outbox.clock();
  part    record;
  due     record;
  pos     bigint;
  due_at  timestamptz;
  open    boolean;
begin
  if not pg_try_advisory_xact_lock(4841297201) then
    return;
  end if;
  perform outbox.assert_sequencer();
  -- Lock first, then look, in separate statements: a snapshot taken with the lock may be older than what it protects.
  select * into last from outbox.step order by id desc limit 1;
  select * into setting from outbox.setting;
  select * into me from outbox.identity();
  select pg_current_snapshot() into cur;
  perform outbox.assert_same_database(last, me.system_identifier, me.database, cur);

  new_epoch := last.timeline <> me.timeline;
  pos := coalesce(last.pos, 0);
  if new_epoch then
    last.epoch := last.epoch + 1;
    pos := outbox.start_epoch(last.epoch);
  end if;
  new_epoch := coalesce(new_epoch, false);

  perform outbox.ensure_log_partition(pos + 1, pos + 2 * piece);

  open := last.previous is not null;
  lower := case when open then last.previous else coalesce(last.snapshot, '3:3:') end;
  cur := case when open then last.snapshot else cur end;
  due_at := greatest(now, last.due_at);
  if not open and cur::text = lower::text then
    select 0 as picked, 0 as numbered, null::bigint as last_id into part;
  else
    select * into part from outbox.number_piece(lower, cur, last.reached, setting.fenced_id, piece, pos, setting.lanes, due_at);
    if part.strangers then
      perform outbox.name_kinds(lower, cur, last.reached, setting.fenced_id, piece);
      select * into part from outbox.number_piece(lower, cur, last.reached, setting.fenced_id, piece, pos, setting.lanes, due_at);
    end if;
  end if;
  pos := pos + part.numbered;
  select * into due from outbox.number_due(coalesce(last.due_at, '-infinity'), coalesce(last.due_id, 0), due_at, piece, pos, setting.lanes);
  pos := pos + due.numbered;

  numbered := part.numbered + due.numbered;
  head := pos;
  more := part.picked = piece or due.numbered = piece;
  -- An empty window is stored too, at most once a second: else every idle poll would read it again.
  if part.picked > 0 or due.numbered > 0 or new_epoch or open or last.id is null
     or (cur::text <> lower::text and (last.at < now - interval '1 second' or last.at > now)) then
    perform set_config('synchronous_commit', 'on', true);
    insert into outbox.step (at, snapshot, previous, reached, pos, due_at, due_id, epoch, timeline, database, system_identifier)
    values (now, cur, case when part.picked = piece then lower end, case when part.picked = piece then part.last_id end, pos,
      case when due.numbered = piece then due.last_at else due_at end,
      case when due.numbered = piece then due.last_id else 9223372036854775807 end,
      coalesce(last.epoch, 0), me.timeline, me.database, me.system_identifier);
    -- Steps are the time index of the log: the last one of each second is kept.
    if date_trunc('second', last.at) = date_trunc('second', now) then
      delete from outbox.step where id = last.id;
    end if;
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
    end if;
  elsif last.system_identifier <> system_identifier or last.database <> database then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: this database was restored or moved; run: hermod rebase';
  elsif pg_snapshot_xmax(cur) < pg_snapshot_xmax(last.snapshot) then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: transaction ids went backwards; run: hermod rebase';
  end if;
  if (select s.last_value from outbox.event_id s) < (select st.fenced_id from outbox.setting st) then
    raise exception using errcode = 'HM015', message = 'HMD_RESTORED: the id sequence lies behind restored events; run: hermod rebase';
  end if;
end $$;
