-- read: the next events of leased lanes, filtered, with payloads.

-- The next rows of the log in one lane; of all lanes, in order, for a subscription with a single lane.
create or replace function outbox.scan(single boolean, from_lane smallint, after bigint, up_to bigint, rows_max integer)
returns setof outbox.log
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  first bigint;
begin
  if not single then
    return query select g.* from outbox.log g where g.lane = from_lane and g.pos > after and g.pos <= up_to
      order by g.pos limit rows_max;
    return;
  end if;
  -- Positions are dense within an epoch: start at the first existing one, then read a range.
  select min(n.pos) into first from outbox.setting t
   cross join lateral generate_series(0, t.lanes - 1) i
   cross join lateral (select g.pos from outbox.log g where g.lane = i and g.pos > after and g.pos <= up_to
                       order by g.pos limit 1) n;
  return query
    select g.* from outbox.setting t
     cross join lateral generate_series(0, t.lanes - 1) i
     cross join lateral (select * from outbox.log g where g.lane = i and g.pos >= first
                         and g.pos < least(first + rows_max, up_to + 1)) g
     order by g.pos;
end $$;

-- The next events of a row's aggregate in the log, after it and not beyond the lane's cursor: they wait for it.
create or replace function outbox.followers(d outbox.delivery, up_to bigint, rows_max integer)
returns table (pos bigint, event_id bigint)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  select g.pos, g.event_id
    from outbox.log g
    join outbox.event e on e.id = g.event_id
   where g.lane = (select outbox.lane_of((d).hash, t.lanes) from outbox.setting t)
     and g.pos > (d).pos and g.pos <= up_to and g.hash = (d).hash
     and e.aggregate_type = (d).aggregate_type and e.aggregate_id = (d).aggregate_id
     and not exists (select from outbox.delivery x
                      where x.subscription = (d).subscription and x.lane = (d).lane and x.pos = g.pos
                        and x.state in ('discarded', 'delivered', 'unknown'))
     and outbox.heard((d).subscription, g.pos, e.type, e.aggregate_type)
   order by g.pos limit rows_max
$$;

-- The first of them, or null.
create or replace function outbox.follower(d outbox.delivery, up_to bigint, out pos bigint, out event_id bigint)
language sql stable
begin atomic
  select f.pos, f.event_id from outbox.followers(d, up_to, 1) f;
end;

-- Events in the log with the hash of an aggregate, in (after, up_to] each, for many aggregates in one pass over the
-- first `rows_max` rows of each log lane. `lane` is that of the caller.
create or replace function outbox.later_rows(
  lanes smallint[], log_lanes smallint[], hashes integer[], after bigint[], up_to bigint[], rows_max integer)
returns table (lane smallint, head bigint, pos bigint, event_id bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  x record;
begin
  for x in select u.log_lane, min(u.after) as after, max(u.up_to) as up_to
             from unnest(log_lanes, later_rows.after, later_rows.up_to) u(log_lane, after, up_to)
            where u.after < u.up_to group by u.log_lane loop
    return query
      select t.lane, t.after, g.pos, g.event_id
        from (select l.pos, l.event_id, l.hash from outbox.log l
               where l.lane = x.log_lane and l.pos > x.after and l.pos <= x.up_to order by l.pos limit rows_max) g
        join unnest(lanes, log_lanes, hashes, later_rows.after, later_rows.up_to) t(lane, log_lane, hash, after, up_to)
          on t.hash = g.hash
       where t.log_lane = x.log_lane and g.pos > t.after and g.pos <= t.up_to;
  end loop;
end $$;

-- The first and the last of them for each that the subscription listens to, without a limit: one pass, whatever the
-- number of aggregates.
create or replace function outbox.later_span(
  sub text, log_lanes smallint[], hashes integer[], after bigint[], up_to bigint[])
returns table (head bigint, first bigint, last bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  x record;
begin
  for x in select r.log_lane, greatest(r.after, f.from_pos) as after, least(r.up_to, f.until) as up_to, f.kinds
             from (select u.log_lane, min(u.after) as after, max(u.up_to) as up_to
                     from unnest(log_lanes, later_span.after, later_span.up_to) u(log_lane, after, up_to)
                    where u.after < u.up_to group by u.log_lane) r
            cross join lateral outbox.listened(sub, r.after, r.up_to) f loop
    return query
      select t.after, min(g.pos), max(g.pos)
        from outbox.log g
        join unnest(log_lanes, hashes, later_span.after, later_span.up_to) t(log_lane, hash, after, up_to)
          on t.hash = g.hash
       where g.lane = x.log_lane and g.pos > x.after and g.pos <= x.up_to
         and (x.kinds is null or g.kind = any (x.kinds))
         and t.log_lane = x.log_lane and g.pos > t.after and g.pos <= t.up_to
       group by t.after;
  end loop;
end $$;

-- Where to look for the followers of these rows: `{"<hash>": [after, last]}`. There are none outside of that. By hash,
-- because a row that is settled may become one for the next event of its aggregate.
create or replace function outbox.reach(s outbox.subscription, lanes smallint[], positions bigint[]) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_bitmapscan = off
set jit = off as $$
  with head as materialized (
    select d.pos, d.hash, outbox.lane_of(d.hash, t.lanes) as log_lane, c.pos as up_to
      from outbox.setting t
     cross join unnest(reach.lanes, reach.positions) u(lane, pos)
     cross join lateral (select x.pos, x.hash from outbox.delivery x
                          where x.subscription = (s).name and x.lane = u.lane and x.pos = u.pos limit 1) d
     cross join lateral outbox.cursor_of((s).name, u.lane) c
     where (s).ordered or (s).coalesced
  )
  select jsonb_object_agg(f.hash, jsonb_build_array(f.after, f.last)) from (
    select h.hash, coalesce(min(p.first) - 1, max(h.up_to)) as after, coalesce(max(p.last), max(h.up_to)) as last
      from head h
      left join (select v.head, min(v.first) as first, max(v.last) as last
                 from (select array_agg(a.log_lane) as lanes, array_agg(a.hash) as hashes, array_agg(a.pos) as after,
                              array_agg(a.up_to) as up_to from head a) w
                cross join lateral outbox.later_span((s).name, w.lanes, w.hashes, w.after, w.up_to) v
                group by v.head) p on p.head = h.pos
     group by h.hash) f
$$;

-- What the open rows of an aggregate mean for its next event. COST 1: else the planner would not write `fields`, which
-- names it more than once, into a read; usually no lane has such rows, and it is not called.
create or replace function outbox.mark(s outbox.subscription, at_lane smallint, of_type text, of_id text) returns text
language sql stable cost 1 set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select case when bool_or(d.state = 'retrying' or (s).dead_holds) then 'blocked' when count(*) > 0 then 'dead' end
    from outbox.delivery d
   where d.subscription = (s).name and d.lane = at_lane and d.hash = outbox.hash(of_type, of_id)
     and d.state in ('retrying', 'dead')
     and d.aggregate_type = of_type and d.aggregate_id = of_id
$$;

-- How far a lane was scanned, of which a read `got` that many events; null: only as far as the last of them.
create or replace function outbox.scanned_through(
  single boolean, of_lane smallint, after bigint, until bigint, ends boolean, kinds smallint[], budget integer,
  scan_max integer, got bigint) returns table (through bigint)
language sql stable
begin atomic
  select case when got < least(c.matched, budget) then null
              when ends and not exists (select from outbox.scan(single, of_lane, coalesce(c.last, after), until, 1))
              then until else c.last end
    from (select count(*) filter (where kinds is null or g.kind = any (kinds)) as matched, max(g.pos) as last
            from outbox.scan(single, of_lane, after, until, case when kinds is null then budget else scan_max end) g) c;
end;

-- These, with `fields`, are parts of one statement. It streams from the index into the answer, in order of position, so
-- that a payload is copied once. The planner must write them into `outbox.read`. It does so only for a plain SQL
-- function that is stable: no SET clause (not even the usual `search_path`), not STRICT, not volatile, not PL/pgSQL.

-- What each lane may have of the limits: an equal share; lanes that were full get what the others leave.
create or replace function outbox.lane_budgets(
  lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean, count_max integer, bytes_max bigint)
returns table (lane smallint, after bigint, budget integer, bytes bigint)
language sql stable
begin atomic
  select w.lane, w.after, greatest(1,
           case when w.full = 0 or w.full = w.number then count_max / w.number
                when w.filled then (
                  count_max - (w.number - w.full) * greatest(1, count_max / (4 * w.number))) / w.full
                else count_max / (4 * w.number) end)::integer, greatest(1, bytes_max / w.number)
    from (select u.*, count(*) over () as number, count(*) filter (where u.filled) over () as full
            from unnest(lanes, after, filled) as u(lane, after, filled)
           -- A lane without news costs one index probe; where a filter ends, every lane is read.
           where ends or exists (select from outbox.log l
                                 where l.lane = u.lane and l.pos > u.after and l.pos <= until)) w;
end;

-- The next rows of a lane that its filter lets through, within its budget by count. `before`: bytes of those before.
create or replace function outbox.lane_rows(
  of_lane smallint, after bigint, until bigint, kinds smallint[], budget integer, scan_max integer)
returns table (pos bigint, event_id bigint, kind smallint, bytes integer, before bigint)
language sql stable
begin atomic
  select w.pos, w.event_id, w.kind, w.bytes, sum(w.bytes) over (order by w.pos rows unbounded preceding) - w.bytes
    from (select c.pos, c.event_id, c.kind, c.bytes
            from (select l.pos, l.event_id, l.kind, l.bytes from outbox.log l
                   where l.lane = of_lane and l.pos > after and l.pos <= until order by l.pos
                   limit case when kinds is null then budget else scan_max end) c
           where kinds is null or c.kind = any (kinds) order by c.pos limit budget) w;
end;

-- Reads several lanes under one filter.
create or replace function outbox.read_lanes(
  s outbox.subscription, lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean,
  kinds smallint[], count_max integer, bytes_max bigint, scan_max integer, marked boolean)
returns table (lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
language sql stable
begin atomic
  select b.lane, false,
         -- Everything matches and no limit was hit: there is nothing more.
         case when r.got < b.budget and kinds is null and not ends and r.bytes < b.bytes then r.last
              when r.got < b.budget then (
                select t.through from outbox.scanned_through(false, b.lane, b.after, until, ends, kinds, b.budget,
                                                             scan_max, r.got) t) end,
         r.fields, r.payloads, r.kind_max
    from outbox.lane_budgets(lanes, after, filled, until, ends, count_max, bytes_max) b
   cross join lateral (
     select count(*) as got, max(g.pos) as last, max(g.before + g.bytes) as bytes, max(g.kind) as kind_max,
            string_agg(outbox.fields(g.pos, g.event_id, g.kind, e.created_at, e.aggregate_id, e.version, m.mark, e.type,
                                     e.aggregate_type, e.key, e.headers), E'\x1e') as fields,
            string_agg(outbox.payload_text(m.mark, e.payload), E'\x1e') as payloads
       from outbox.lane_rows(b.lane, b.after, until, kinds, b.budget, scan_max) g
       left join outbox.event e on e.id = g.event_id
      cross join lateral (
        select case when marked then outbox.mark(s, b.lane, e.aggregate_type, e.aggregate_id) end as mark) m
      where g.before < b.bytes) r;
end;

-- The same for a subscription with a single lane, which reads all lanes of the log by position.
create or replace function outbox.read_single(
  s outbox.subscription, after bigint, until bigint, ends boolean, kinds smallint[], budget integer, bytes_max bigint,
  scan_max integer, marked boolean)
returns table (lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  got integer;
begin
  lane := 0;
  due := false;
  select count(*), max(g.kind), string_agg(outbox.fields(g.pos, g.event_id, g.kind, e.created_at, e.aggregate_id,
           e.version, m.mark, e.type, e.aggregate_type, e.key, e.headers), E'\x1e'),
         string_agg(outbox.payload_text(m.mark, e.payload), E'\x1e')
    into got, kind_max, fields, payloads
    from (select w.*, sum(w.bytes) over (order by w.pos rows unbounded preceding) - w.bytes as before
            from (select c.* from outbox.scan(true, 0::smallint, after, until,
                                              case when kinds is null then budget else scan_max end) c
                   where kinds is null or c.kind = any (kinds) order by c.pos limit budget) w) g
    left join outbox.event e on e.id = g.event_id
   cross join lateral (
     select case when marked then outbox.mark(s, 0::smallint, e.aggregate_type, e.aggregate_id) end as mark) m
   where g.before < bytes_max;
  if got < budget then
    select t.through into through
      from outbox.scanned_through(true, 0::smallint, after, until, ends, kinds, budget, scan_max, got) t;
  end if;
  return next;
end $$;

-- Deliveries that are due again, and the pending ones of a ledger.
create or replace function outbox.read_due(
  s outbox.subscription, lanes smallint[], count_max integer, bytes_max bigint, now timestamptz)
returns table (lane smallint, fields text, payload text)
language sql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  with first as materialized (
    select d.* from outbox.delivery d
     where d.subscription = (s).name and d.lane = any (lanes) and d.next_attempt_at <= now
       and not ((s).ordered and not (s).coalesced and exists (
         select from outbox.delivery o where o.subscription = d.subscription and o.lane = d.lane and o.hash = d.hash
            and o.aggregate_type = d.aggregate_type and o.aggregate_id = d.aggregate_id and o.pos < d.pos
              and o.state <> 'delivered'
            and (o.state in ('pending', 'retrying', 'sending')
                 or (o.state = 'dead' and (s).dead_holds and not (s).ledger))))
     order by d.next_attempt_at, d.pos limit count_max
  ), ending as materialized (
    -- How far each of them blocks: up to the cursor, or to the aggregate's next row.
    select h.lane, h.pos, h.hash, outbox.lane_of(h.hash, t.lanes) as log_lane, least(c.pos, (
             select min(o.pos) - 1 from outbox.delivery o
              where o.subscription = h.subscription and o.lane = h.lane and o.hash = h.hash and o.state <> 'delivered'
                and o.aggregate_type = h.aggregate_type and o.aggregate_id = h.aggregate_id and o.pos > h.pos)) as up_to
      from outbox.setting t cross join first h cross join lateral outbox.cursor_of((s).name, h.lane) c
     where (s).ordered and not (s).coalesced and not (s).ledger and count_max > 1
  ), due as materialized (
    -- Events blocked by a row are sent with it, in order: else an aggregate that failed once could catch up only event
    -- by event.
    select * from (
      select h.lane, h.pos, h.event_id, h.attempts, h.aggregate_type, h.aggregate_id, h.correction, h.event from first h
      union all
      select * from (
        select g.lane, g.pos, g.event_id, 0, h.aggregate_type, h.aggregate_id, null::json, null::json
          from (select array_agg(e.lane) as lanes, array_agg(e.log_lane) as log_lanes, array_agg(e.hash) as hashes,
                       array_agg(e.pos) as after, array_agg(e.up_to) as up_to from ending e) w
         -- The rest of a long log is looked through when the row is settled.
         cross join lateral (
           select r.* from outbox.later_rows(w.lanes, w.log_lanes, w.hashes, w.after, w.up_to, 100000) r
            order by r.pos) g
          join outbox.delivery h on h.subscription = (s).name and h.lane = g.lane and h.pos = g.head
          join outbox.event e on e.id = g.event_id
         where e.aggregate_type = h.aggregate_type and e.aggregate_id = h.aggregate_id
           and not exists (select from outbox.delivery x where x.subscription = (s).name and x.lane = g.lane
                              and x.pos = g.pos and x.state in ('discarded', 'delivered', 'unknown'))
           and outbox.heard((s).name, g.pos, e.type, e.aggregate_type)
         order by g.pos limit count_max) b) u
     order by u.pos limit count_max
  ), sized as (
    select d.*, e.version as e_version, e.created_at as e_created_at, e.type as e_type, e.key as e_key,
           e.headers as e_headers, e.payload as e_payload,
           coalesce(sum(e.bytes) over (order by d.pos rows unbounded preceding), 0) - coalesce(e.bytes, 0) as before
      from due d left join outbox.event e on e.id = d.event_id
  )
  select z.lane,
         outbox.fields(z.pos, z.event_id, 0::smallint,
           coalesce(z.e_created_at, (z.event ->> 'created_at')::timestamptz), z.aggregate_id, coalesce(z.e_version,
             (z.event ->> 'version')::smallint), 'due ' || z.attempts, coalesce(z.e_type, z.event ->> 'type'),
           z.aggregate_type, coalesce(z.e_key, z.event ->> 'key'),
           coalesce(z.correction -> 'headers', z.e_headers, z.event -> 'headers')),
         outbox.payload_text(null, coalesce(z.correction -> 'payload', z.e_payload, z.event -> 'payload'))
    from sized z where z.before < bytes_max order by z.pos
$$;

-- The next events of the lanes: one row per lane that has some, and one more for its retries that are due. Fields and
-- payloads are lists separated by U+001E: thousands of rows with a dozen columns cost both sides more than the events
-- themselves. `through` says how far the lane was scanned (null: only as far as its last event). The first row has no
-- lane; it says that the subscription may be read, and up to which head. No row at all: it is paused, held, outdated
-- or in another mode.
create or replace function outbox.read(
  sub text, rev integer, lanes smallint[], after bigint[], count_max integer, bytes_max bigint, scan_max integer,
  probing boolean, filled boolean[] default null,   -- lanes whose last read hit a limit
  rehearsed boolean default null)   -- for a dry run; null: in any mode
returns table (lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s      outbox.subscription;
  now    timestamptz := outbox.clock();
  marked boolean;
  used   integer := 0;
  got    integer;
  head   bigint;
  f      record;
  kinds  smallint[];
begin
  select * into s from outbox.subscription where name = sub;
  if s.name is null or s.revision > rev or s.mode = 'paused' or (s.held_cause is not null and not probing)
     -- The caller has not heard yet that a dry run began or ended.
     or (s.mode = 'dry-run') <> rehearsed then
    return;
  end if;
  -- Nothing beyond this head is read. Kinds are looked up after it, so they include every kind up to it.
  head := coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0);
  through := head;
  return next;
  through := null;
  if exists (select from outbox.delivery d where d.subscription = sub and d.lane = any (lanes)
               and d.next_attempt_at > outbox.last_due(now)) then
    update outbox.delivery d set next_attempt_at = now
     where d.subscription = sub and d.lane = any (lanes) and d.next_attempt_at > outbox.last_due(now);
  end if;
  if s.mode <> 'dry-run' and exists (select from outbox.delivery d
                                     where d.subscription = sub and d.lane = any (lanes)
                                       and d.next_attempt_at <= now) then
    due := true;
    for lane, got, fields, payloads in
      select d.lane, count(*), string_agg(d.fields, E'\x1e' order by d.n), string_agg(d.payload, E'\x1e' order by d.n)
        from outbox.read_due(s, lanes, count_max, bytes_max, now) with ordinality as d(lane, fields, payload, n)
       group by d.lane
    loop
      used := used + got;
      return next;
    end loop;
  end if;
  if s.ledger and s.mode <> 'dry-run' then
    return;
  end if;
  marked := (s.ordered or s.coalesced) and s.mode <> 'dry-run'
    and exists (select from outbox.delivery d where d.subscription = sub and d.lane = any (lanes)
                and d.state in ('retrying', 'dead'));
  -- Lanes with the same filter at their cursor are read together: usually all of them.
  for f in
    select c.types, c.aggregates, least(head, c.next) as until, coalesce(c.next <= head, false) as ends, u.*
      from (select x.types, x.aggregates, x.from_pos, lead(x.from_pos) over (order by x.from_pos) as next
              from outbox.filter x where x.subscription = sub) c
     cross join lateral (
       select array_agg(w.lane) as lanes, array_agg(w.after) as after, array_agg(coalesce(w.filled, false)) as filled,
              count(*)::integer as number
         from unnest(read.lanes, read.after, read.filled) as w(lane, after, filled)
        where w.after >= c.from_pos and (c.next is null or w.after < c.next)) u
     where u.number > 0
  loop
    kinds := outbox.kinds(f.types, f.aggregates);
    if s.lanes > 1 then
      return query select * from outbox.read_lanes(s, f.lanes, f.after, f.filled, f.until, f.ends, kinds,
        (count_max - used) * f.number / cardinality(lanes), bytes_max * f.number / cardinality(lanes), scan_max,
          marked);
    else
      return query select * from outbox.read_single(s, f.after[1], f.until, f.ends, kinds,
                                                    greatest(1, count_max - used), bytes_max, scan_max, marked);
    end if;
  end loop;
end $$;
