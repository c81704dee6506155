-- What an operator asks. Every word of a state is made here, once: `outbox.status`, `stats`, `find` and
-- `show` read the same two functions, `whereabouts` (where is the event?) and `states_of` (what does that mean for each
-- subscription?). Plans are pinned as in claim: nothing here may read `event` or `log` from end to end.

-- When a position was assigned, to the second: lag and latency count from it.
create or replace function outbox.sequenced_at(of_pos bigint) returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
  select st.at from outbox.step st where st.pos >= of_pos order by st.pos, st.at limit 1
$$;

-- The log row of an event, through the BRIN index on event_id: a few pages a partition. Callers forbid bitmap scans,
-- and a setting of the caller holds here too: before PostgreSQL 18 the log was then read from end to end.
create or replace function outbox.log_of(of_event bigint, out pos bigint, out lane smallint, out hash integer)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_indexscan = off
set enable_indexonlyscan = off set enable_bitmapscan = on set jit = off set max_parallel_workers_per_gather = 0 as $$
  select g.pos, g.lane, g.hash from outbox.log g where g.event_id = of_event limit 1
$$;

-- The log row at a position.
create or replace function outbox.log_at(of_pos bigint) returns setof outbox.log
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
  select g.* from outbox.setting t
   cross join lateral generate_series(0, t.lanes - 1) i
   cross join lateral (select * from outbox.log g where g.lane = i and g.pos = of_pos) g limit 1
$$;

-- Where an event is: numbered; filed until it is due; waiting to be numbered; or gone, numbered in a part of the log
-- that retention has emptied since.
create or replace function outbox.whereabouts(
  of_id bigint, of_xid xid8, of_not_before timestamptz, out stage text, out pos bigint, out lane smallint,
  out hash integer)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  last outbox.step;
begin
  select g.pos, g.lane, g.hash into pos, lane, hash from outbox.log_of(of_id) g;
  if pos is not null then
    stage := 'numbered';
    return;
  end if;
  if of_not_before is not null and (of_not_before > outbox.clock()
      or exists (select from outbox.scheduled s where s.due = of_not_before and s.event_id = of_id)) then
    stage := 'filed';
    return;
  end if;
  select * into last from outbox.step st order by st.id desc limit 1;
  stage := case
    when of_id <= (select t.fenced_id from outbox.setting t) then 'gone'
    when last.id is null then 'waiting'
    when pg_visible_in_snapshot(of_xid, coalesce(last.previous, last.snapshot)) then 'gone'
    when last.previous is not null and of_id <= last.reached
      and pg_visible_in_snapshot(of_xid, last.snapshot) then 'gone'
    else 'waiting' end;
end $$;

-- How far the calls now under way may reach in a lane: an estimate, because the lanes of a loop share a batch. Null:
-- nothing is being sent. For ledger sinks it is exact, by their rows.
create or replace function outbox.batch_end(s outbox.subscription, of_lane smallint, after bigint) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  n  integer := coalesce((s.definition -> 'batch' ->> 'count')::integer, 100);
  up bigint  := case when s.mode <> 'dry-run' then (select p."to" from outbox.parked_in(s.name, of_lane) p) end;
begin
  if up is not null then
    return up;   -- The destination works on it, whichever worker asks for the outcome.
  end if;
  if s.ledger or s.mode <> 'live' or s.held_cause is not null or not exists (
      select from outbox.lane l where l.subscription = s.name and l.lane = of_lane and l.owner is not null
        and l.lease_until > outbox.clock()) then
    return null;
  elsif s.lanes = 1 then
    return after + n;
  end if;
  return (select max(b.pos) from (select g.pos from outbox.log g where g.lane = of_lane and g.pos > after order by g.pos
                                  limit n) b);
end $$;

-- One row for each subscription an event concerns: those whose filter, as it was at that position, matches, and that
-- had started by then. The nine words, and no others:
--   not numbered:  scheduled · pending
--   with a row:    retrying · dead · unknown · discarded · delivered · processing (being sent) · pending; blocked
--                  behind an earlier retry
--   without a row: at or below the cursor  delivered, or blocked behind an open row of its aggregate
--                  above the cursor        processing (within the batch of a leased lane), then pending
create or replace function outbox.states_of(
  of_stage text, of_pos bigint, log_lane smallint, of_hash integer, of_event bigint, of_type text,
  of_aggregate_type text, of_aggregate_id text, emitted_at timestamptz)
returns table (subscription text, lane smallint, state text, attempts integer, next_attempt_at timestamptz,
               first_failed_at timestamptz,
  updated_at timestamptz, code text, blocked_by_pos bigint)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  select s.name, l.lane, case
           when d.state = 'sending' then 'processing'
           when h.pos is not null and (d.state = 'pending' or (d.state = 'retrying' and not s.coalesced)) then 'blocked'
           when d.state is not null then d.state
           when of_stage = 'filed' then 'scheduled'
           when of_stage = 'waiting' then 'pending'
           when of_stage = 'gone' then 'delivered'
           when of_pos <= c.pos then case when h.pos is null then 'delivered' else 'blocked' end
           when h.pos is null and of_pos <= outbox.batch_end(s, l.lane, c.pos) then 'processing'
           else 'pending' end,
         coalesce(d.attempts, 0), d.next_attempt_at, d.first_failed_at, d.updated_at, d.code,
         case when d.state is null or d.state in ('pending', 'retrying') then h.pos end
    from outbox.subscription s
   cross join lateral (select case when s.lanes = 1 then 0::smallint else log_lane end as lane) l
    left join lateral (select x.state, x.attempts, x.next_attempt_at, x.first_failed_at, x.updated_at, x.code
                         from outbox.delivery x where x.event_id = of_event and x.subscription = s.name
                           limit 1) d on true
    left join lateral (select f.types, f.aggregates from outbox.filter f
                        where f.subscription = s.name and f.from_pos < coalesce(of_pos, 9223372036854775807)
                        order by f.from_pos desc limit 1) f on true
    left join lateral (select o.pos from outbox.delivery o
                        where (s.ordered or s.coalesced) and o.subscription = s.name and o.lane = l.lane
                          and o.hash = of_hash and o.pos < of_pos
                          and o.aggregate_type = of_aggregate_type and o.aggregate_id = of_aggregate_id
                            and o.state <> 'delivered'
                          and (o.state = 'retrying' or (o.state = 'dead' and s.dead_holds and not s.ledger))
                        order by o.pos limit 1) h on true
    left join lateral outbox.cursor_of(s.name, l.lane) c on of_stage = 'numbered'
   where d.state is not null
      or (case of_stage when 'numbered' then of_pos > s.start_pos
          when 'gone' then s.start_pos = 0 or s.created_at <= emitted_at else true end
          and outbox.matches(f.types, of_type) and (f.aggregates is null or of_aggregate_type = any (f.aggregates)))
$$;

-- Where is event X for every subscription? Ask by event_id (`outbox.log_at` gives the event of a position).
create or replace view outbox.status as
select e.id as event_id, w.pos, x.subscription, x.state, x.attempts, x.next_attempt_at, x.code, d.error,
       x.blocked_by_pos,
       x.first_failed_at, x.updated_at, e.type, e.aggregate_type, e.aggregate_id
  from outbox.event e
 cross join lateral outbox.whereabouts(e.id, e.xid, e.not_before) w
 cross join lateral outbox.states_of(w.stage, w.pos, w.lane, w.hash, e.id, e.type, e.aggregate_type, e.aggregate_id,
                                     e.created_at) x
  left join outbox.delivery d on d.event_id = e.id and d.subscription = x.subscription
union all
-- Rows may outlive their events.
select d.event_id, d.pos, d.subscription, case d.state when 'sending' then 'processing'
       else d.state end, d.attempts, d.next_attempt_at,
       d.code, d.error, null, d.first_failed_at, d.updated_at, d.event ->> 'type', d.aggregate_type, d.aggregate_id
  from outbox.delivery d where not exists (select from outbox.event e where e.id = d.event_id);

-- Committed and not numbered yet, by kind; `rows_max` bounds what is looked at.
create or replace function outbox.unnumbered(rows_max integer)
returns table (type text, aggregate_type text, count bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  last   outbox.step;
  lower  pg_snapshot;
  fenced bigint;
begin
  select * into last from outbox.step st order by st.id desc limit 1;
  select t.fenced_id into fenced from outbox.setting t;
  lower := coalesce(last.previous, last.snapshot, '3:3:');
  return query
    select w.type, w.aggregate_type, count(*) from (
      select e.id, e.xid, e.not_before, e.type, e.aggregate_type from outbox.event e
        where e.xid >= pg_snapshot_xmax(lower)
      union all
      select e.id, e.xid, e.not_before, e.type, e.aggregate_type from outbox.event e
        where e.xid = any (array(select x from pg_snapshot_xip(lower) x))
      limit rows_max) w
     where w.id > fenced and (w.not_before is null or w.not_before <= outbox.clock())
       and not (last.previous is not null and w.id <= last.reached and pg_visible_in_snapshot(w.xid, last.snapshot))
     group by 1, 2;
end $$;

-- The lag of a subscription: log rows past its cursors that its filter matches, counted along (lane, pos). Beyond
-- `scan_max` rows the rest is estimated from what was seen of that lane.
create or replace function outbox.lag_of(
  sub text, scan_max integer, out head bigint, out cursor_pos bigint, out delivered bigint, out past bigint,
  out processing bigint, out estimated boolean, out oldest_pos bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  s     outbox.subscription;
  lanes integer;
  f     record;
  u     record;
  n     record;
  share integer;
  left_over numeric;
begin
  select * into s from outbox.subscription x where x.name = sub;
  select t.lanes, greatest(1, scan_max / t.lanes) into lanes, share from outbox.setting t;
  select coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0) into head;
  select min(c.pos), sum(c.delivered) into cursor_pos, delivered
    from outbox.lane l cross join lateral outbox.cursor_of(sub, l.lane) c where l.subscription = sub;
  past := 0;
  processing := 0;
  estimated := false;
  for f in
    select x.from_pos, least(head, lead(x.from_pos, 1, head) over (order by x.from_pos)) as to_pos,
           outbox.kinds(x.types, x.aggregates) as kinds
      from outbox.filter x where x.subscription = sub
  loop
    for u in
      select i::smallint as lane, greatest(c.pos, f.from_pos) as after, outbox.batch_end(s, p.lane, c.pos) as batch_end
        from generate_series(0, lanes - 1) i
       cross join lateral (select case when s.lanes = 1 then 0 else i end::smallint as lane) p
       cross join lateral outbox.cursor_of(sub, p.lane) c
       where greatest(c.pos, f.from_pos) < f.to_pos
    loop
      if f.kinds is null then
        select count(*) as scanned, max(g.pos) as last, count(*) as hits, min(g.pos) as first into n
          from (select g.pos from outbox.log g where g.lane = u.lane and g.pos > u.after and g.pos <= f.to_pos
                order by g.pos limit share) g;
      else
        -- Evaluated once per row, below the limit: filters on aggregates would evaluate it again for each of them.
        select count(*) as scanned, max(g.pos) as last, count(g.hit) as hits, min(g.hit) as first into n
          from (select g.pos, case when g.kind = any (f.kinds) then g.pos end as hit
                  from outbox.log g where g.lane = u.lane and g.pos > u.after and g.pos <= f.to_pos order by g.pos
                    limit share) g;
      end if;
      past := past + n.hits;
      if n.first <= u.batch_end then
        processing := processing + (select count(*) from outbox.log g where g.lane = u.lane and g.pos > u.after
          and g.pos <= least(u.batch_end, f.to_pos) and (f.kinds is null or g.kind = any (f.kinds)));
      end if;
      oldest_pos := least(oldest_pos, n.first);
      if n.scanned = share and n.last < f.to_pos then
        -- Positions are dense within an epoch (2^32); what an older epoch may still hold is left out.
        left_over := f.to_pos - greatest(n.last, (f.to_pos >> 32) << 32);
        past := past + (left_over * n.hits / greatest(1, n.last - greatest(u.after, (n.last >> 32) << 32)))::bigint;
        estimated := true;
      end if;
    end loop;
  end loop;
end $$;

-- Events blocked by open rows of their aggregate: those without a row, at or below the cursor, and `waiting` rows.
create or replace function outbox.blocked_of(
  sub text, scan_max integer, out blocked bigint, out waiting bigint, out waiting_pending bigint, out estimated boolean)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  s outbox.subscription;
  u record;
  n record;
begin
  blocked := 0;
  estimated := false;
  select * into s from outbox.subscription x where x.name = sub;
  select count(*) filter (where d.state = 'retrying'), count(*) filter (where d.state = 'pending')
    into waiting, waiting_pending
    from outbox.delivery d where d.subscription = sub and d.state = any ('{pending,retrying}') and s.ordered
      and not s.coalesced and exists (
      select from outbox.delivery o where o.subscription = sub and o.lane = d.lane and o.hash = d.hash and o.pos < d.pos
        and o.state <> 'delivered'
         and o.aggregate_type = d.aggregate_type and o.aggregate_id = d.aggregate_id
         and (o.state = 'retrying' or (o.state = 'dead' and s.dead_holds and not s.ledger)));
  for u in
    select d.lane, min(d.pos) as first, (select c.pos from outbox.cursor_of(sub, d.lane) c) as cursor_pos
      from outbox.delivery d
     where d.subscription = sub and d.state in ('retrying', 'dead') and (d.state = 'retrying' or s.dead_holds)
       and (s.ordered or s.coalesced) and not s.ledger
     group by d.lane
  loop
    with scanned as materialized (
      select * from outbox.scan(s.lanes = 1, u.lane, u.first, u.cursor_pos, scan_max)
    ), holder as materialized (
      select o.hash, min(o.pos) as pos from outbox.delivery o
       where o.subscription = sub and o.lane = u.lane and o.state in ('retrying', 'dead')
         and (o.state = 'retrying' or s.dead_holds) group by 1
    )
    select (select count(*) from scanned) as scanned, count(*) as held into n
      from scanned g join holder h on h.hash = g.hash and h.pos < g.pos
     where not exists (select from outbox.delivery o where o.subscription = sub and o.lane = u.lane and o.pos = g.pos)
       and exists (select from (select f.types, f.aggregates from outbox.filter f
                                where f.subscription = sub and f.from_pos < g.pos
                                 order by f.from_pos desc limit 1) f
                    where (outbox.kinds(f.types, f.aggregates) is null
                           or g.kind = any (outbox.kinds(f.types, f.aggregates))));
    blocked := blocked + n.held;
    estimated := estimated or n.scanned = scan_max;
  end loop;
end $$;

-- Deliveries since a moment, from the calls.
create or replace function outbox.rates(since timestamptz)
returns table (subscription text, delivered bigint, failed bigint)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_indexscan = off
set enable_bitmapscan = on set jit = off set max_parallel_workers_per_gather = 0 as $$
  select a.subscription, sum(a.delivered + a.superseded), sum(a.failed) from outbox.attempt a
   where a.started_at > since and a.pos is null and not a.dry_run group by 1
$$;

-- The group of a dead letter: one short name for (subscription, what went wrong).
create or replace function outbox.dead_group(d outbox.delivery) returns text
language sql immutable parallel safe
return left(md5((d).subscription || chr(31) || coalesce((d).fingerprint, (d).code, '')), 12);
