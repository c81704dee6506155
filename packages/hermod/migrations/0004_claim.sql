-- claim: lease lanes, read what comes next in them. Plans are pinned: on partitioned tables the planner otherwise flips
-- to a hash join over everything once statistics change.

-- Installs or raises a subscription's definition. Same revision, same definition: nothing happens.
create function outbox.subscribe(
  sub text, rev integer, def jsonb, types text[], aggregates text[], lane_count smallint,
  ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text, start_pos bigint)
returns void language plpgsql as $$
declare
  known outbox.subscription;
  head  bigint;
begin
  perform pg_advisory_xact_lock(1212370245, outbox.hash('subscription', sub));
  select * into known from outbox.subscription s where s.name = sub;
  if known.revision < rev then
    -- No settle under the old definition can pass the position from which the new one holds: lock first, then look.
    perform from outbox.lane l where l.subscription = sub order by l.lane for update;
  end if;
  select coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0) into head;
  if known.name is null then
    insert into outbox.subscription (name, revision, definition, mode, lanes, ordered, coalesced, ledger, dead_holds, start_pos)
    values (sub, rev, def, start_mode, lane_count, ordered, coalesced, ledger, dead_holds, coalesce(subscribe.start_pos, head));
    insert into outbox.lane (subscription, lane) select sub, n from generate_series(0, lane_count - 1) n;
    insert into outbox.cursor (subscription, lane, fence, pos) select sub, n, 0, coalesce(subscribe.start_pos, head) from generate_series(0, lane_count - 1) n;
    insert into outbox.filter (subscription, from_pos, types, aggregates) values (sub, least(coalesce(subscribe.start_pos, head), 0), subscribe.types, subscribe.aggregates);
  elsif known.revision > rev then
    return;   -- This worker is outdated: it neither claims nor settles, and its heartbeat says so.
  elsif known.revision = rev and known.definition <> def then
    raise exception using errcode = 'HM020', message = format('HMD_SUBSCRIPTION_CONFLICT: %s revision %s is installed with another definition; raise its revision', sub, rev);
  elsif known.lanes <> lane_count or known.ledger <> subscribe.ledger then
    raise exception using errcode = 'HM020', message = format('HMD_SUBSCRIPTION_CONFLICT: lanes and ledger mode of %s are fixed; use another name', sub);
  elsif known.revision < rev then
    update outbox.subscription s set revision = rev, definition = def, ordered = subscribe.ordered,
           coalesced = subscribe.coalesced, dead_holds = subscribe.dead_holds where s.name = sub;
    insert into outbox.filter (subscription, from_pos, types, aggregates) values (sub, head, subscribe.types, subscribe.aggregates)
    on conflict on constraint filter_pkey do update set types = excluded.types, aggregates = excluded.aggregates;
    perform outbox.release_held(known, (select s from outbox.subscription s where s.name = sub));
  end if;
end $$;

-- A new policy that no longer holds followers back: those behind a cursor get rows, else nobody would send them.
create function outbox.release_held(before outbox.subscription, after outbox.subscription) returns void
language plpgsql as $$
declare
  d     outbox.delivery;
  next  record;
  up_to bigint;
begin
  for d in
    select x.* from outbox.delivery x where x.subscription = after.name and not after.ledger
       and ((x.state = 'retrying' and before.ordered and not (after.ordered or after.coalesced))
         or (x.state = 'dead' and before.dead_holds and not after.dead_holds))
     order by x.lane, x.pos
  loop
    up_to := (select c.pos from outbox.cursor_of(after.name, d.lane) c);
    loop
      select * into next from outbox.follower(d, up_to);
      exit when next.pos is null;
      insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, attempts_max, next_attempt_at, updated_at)
      values (d.subscription, d.lane, next.pos, next.event_id, d.aggregate_type, d.aggregate_id, d.hash, 'retrying', d.attempts_max, outbox.clock(), outbox.clock())
      on conflict on constraint delivery_pkey do nothing;
      exit when after.ordered or after.coalesced;   -- the row walks on by itself
      d.pos := next.pos;
    end loop;
  end loop;
end $$;

-- Does a pattern list (`document.updated`, `document.*`, `*`) match a type?
create function outbox.matches(patterns text[], type text) returns boolean
language sql immutable parallel safe
return exists (select from unnest(patterns) p
  where p = '*' or p = type or (right(p, 2) = '.*' and starts_with(type, left(p, -1))));

-- The kinds a filter matches; null = all of them.
create function outbox.kinds(types text[], aggregates text[]) returns smallint[]
language sql stable
return case when '*' = any (types) and aggregates is null then null else
  array(select distinct k.code from outbox.kind k
         where k.code = 0 or (outbox.matches(types, k.type) and (aggregates is null or k.aggregate_type = any (aggregates)))) end;

-- The newest cursor of a lane: the live one, or the shadow of a dry run.
create function outbox.cursor_of(sub text, lane smallint, out fence bigint, out pos bigint, out delivered bigint)
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select c.fence, c.pos, c.delivered from outbox.cursor c
   where c.subscription = sub and c.lane = cursor_of.lane order by c.fence desc, c.pos desc limit 1
$$;
create function outbox.shadow_of(sub text, lane smallint, out fence bigint, out pos bigint, out delivered bigint)
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select c.fence, c.pos, c.delivered from outbox.shadow c
   where c.subscription = sub and c.lane = shadow_of.lane order by c.fence desc, c.pos desc limit 1
$$;

-- Leases up to `lanes_max` free lanes that have work. An idle call writes nothing, not even a transaction id.
create function outbox.claim(sub text, rev integer, who text, lanes_max integer, lease_ms integer)
returns table (lane smallint, fence bigint, pos bigint, expired boolean)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s          outbox.subscription;
  now        timestamptz := outbox.clock();
  head       bigint;
  replayed   bigint;
  candidates smallint[];
  taken      smallint[];
  late       smallint[];
begin
  select * into s from outbox.subscription where name = sub;
  if s.name is null then
    raise exception using errcode = 'HM022', message = format('HMD_SUBSCRIPTION_UNKNOWN: %s', sub);
  elsif s.revision > rev then
    raise exception using errcode = 'HM021', message = format('HMD_SUBSCRIPTION_OUTDATED: %s has revision %s, this worker has %s', sub, s.revision, rev);
  elsif s.mode = 'paused' then
    return;
  end if;
  select st.pos into head from outbox.step st order by st.id desc limit 1;
  replayed := case when s.mode = 'live' then outbox.replay_of(sub) end;
  -- All of them: loops that claim at the same moment pass over each other's lanes, and must find others.
  candidates := array(
    select l.lane from outbox.lane l
     cross join lateral (select coalesce((select d.pos from outbox.shadow_of(sub, l.lane) d where s.mode = 'dry-run'),
                                         (select c.pos from outbox.cursor_of(sub, l.lane) c)) as pos) c
     where l.subscription = sub and l.lease_until <= now
       and (c.pos < head and (s.lanes = 1 or exists (select from outbox.log g where g.lane = l.lane and g.pos > c.pos))
            or exists (select from outbox.delivery d where d.subscription = sub and d.lane = l.lane and d.next_attempt_at <= now)
            or s.ledger and exists (select from outbox.delivery d where d.subscription = sub and d.lane = l.lane and d.state = 'sending')
            or replayed is not null and exists (select from outbox.replay r
                 where r.subscription = sub and r.journey = replayed and r.lane = l.lane and not r.met))
     order by random());
  if cardinality(candidates) = 0 then
    return;
  end if;
  with free as (
    select l.lane, l.owner is not null as expired from outbox.lane l
     where l.subscription = sub and l.lane = any (candidates) and l.lease_until <= now
     order by array_position(candidates, l.lane) limit lanes_max for update skip locked
  ), mine as (
    update outbox.lane l set owner = who, fence = l.fence + 1, lease_until = now + lease_ms * interval '1 millisecond'
      from free f where l.subscription = sub and l.lane = f.lane
    returning l.lane, f.expired
  ) select array_agg(m.lane), coalesce(array_agg(m.lane) filter (where m.expired), '{}') into taken, late from mine m;
  if taken is null then
    return;
  end if;
  -- A message the former owner was sending when it vanished: the outcome cannot be known.
  if s.ledger then
    update outbox.delivery d set state = 'unknown', updated_at = now, code = 'HMD_LEASE_LOST',
           error = 'the worker that was sending this vanished: it may or may not have been accepted'
      from outbox.lane l
     where l.subscription = sub and l.lane = any (taken) and d.subscription = sub and d.lane = l.lane
       and d.state = 'sending' and d.fence < l.fence;
  end if;
  -- In its own statement: the cursor of a settle that committed while this one locked.
  return query
    select l.lane, l.fence, coalesce((select d.pos from outbox.shadow_of(sub, l.lane) d where s.mode = 'dry-run'),
                                     (select c.pos from outbox.cursor_of(sub, l.lane) c)), l.lane = any (late)
      from outbox.lane l where l.subscription = sub and l.lane = any (taken);
end $$;

-- Still mine? Returns the lanes whose lease was extended; the others are lost.
create function outbox.renew(sub text, who text, lanes smallint[], fences bigint[], lease_ms integer) returns setof smallint
language sql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  update outbox.lane l set lease_until = outbox.clock() + lease_ms * interval '1 millisecond'
    from unnest(lanes, fences) as mine(lane, fence)
   where l.subscription = sub and l.lane = mine.lane and l.fence = mine.fence and l.owner = who
  returning l.lane
$$;

create function outbox.release(sub text, who text, lanes smallint[], fences bigint[]) returns setof smallint
language sql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  update outbox.lane l set owner = null, lease_until = '-infinity'
    from unnest(lanes, fences) as mine(lane, fence)
   where l.subscription = sub and l.lane = mine.lane and l.fence = mine.fence and l.owner = who
  returning l.lane
$$;

-- After a lost answer: which lanes are still mine, and where do they stand?
create function outbox.held(sub text, who text, lanes smallint[], fences bigint[]) returns table (lane smallint, pos bigint)
language sql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select l.lane, coalesce((select d.pos from outbox.shadow_of(sub, l.lane) d where s.mode = 'dry-run'),
                          (select c.pos from outbox.cursor_of(sub, l.lane) c))
    from outbox.subscription s
    join outbox.lane l on l.subscription = s.name
    join unnest(held.lanes, held.fences) as mine(lane, fence) on l.lane = mine.lane and l.fence = mine.fence
   where s.name = sub and l.owner = who
$$;

-- A call that its destination took as a task: whoever owns the lane next asks for the outcome instead of sending again.
-- Returns the lanes it is recorded for.
create function outbox.park(sub text, who text, handle text, lanes json) returns setof smallint
language sql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  update outbox.lane l set parked = jsonb_build_object('handle', park.handle, 'fence', c.fence::text, 'from', b."from"::text, 'to', b."to"::text,
           'delivered', b.delivered, 'superseded', b.superseded, 'since', outbox.clock())
    from json_to_recordset(park.lanes) as b(lane smallint, fence bigint, "from" bigint, "to" bigint, delivered integer, superseded integer)
   cross join lateral outbox.cursor_of(sub, b.lane) c
   where l.subscription = sub and l.lane = b.lane and l.fence = b.fence and l.owner = who and c.pos = b."from"
  returning l.lane
$$;

-- What is parked in a lane. Void unless the cursor is still the one it began at: neither moved on, nor moved and put back.
create function outbox.parked_in(sub text, of_lane smallint) returns table (handle text, "from" bigint, "to" bigint,
  delivered integer, superseded integer, since timestamptz)
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select p.handle, p."from", p."to", p.delivered, p.superseded, p.since
    from outbox.lane l
   cross join lateral jsonb_to_record(l.parked) as p(handle text, fence bigint, "from" bigint, "to" bigint, delivered integer, superseded integer, since timestamptz)
   cross join lateral outbox.cursor_of(sub, of_lane) c
   where l.subscription = sub and l.lane = of_lane and l.parked is not null
     and c.pos = p."from" and c.fence = p.fence
$$;

-- The next rows of the log in one lane; of all lanes, in order, for a subscription with a single lane.
create function outbox.scan(single boolean, from_lane smallint, after bigint, up_to bigint, rows_max integer) returns setof outbox.log
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  first bigint;
begin
  if not single then
    return query select g.* from outbox.log g where g.lane = from_lane and g.pos > after and g.pos <= up_to order by g.pos limit rows_max;
    return;
  end if;
  -- Positions are dense within an epoch: start at the first one there is, then read a range.
  select min(n.pos) into first from outbox.setting t
   cross join lateral generate_series(0, t.lanes - 1) i
   cross join lateral (select g.pos from outbox.log g where g.lane = i and g.pos > after and g.pos <= up_to order by g.pos limit 1) n;
  return query
    select g.* from outbox.setting t
     cross join lateral generate_series(0, t.lanes - 1) i
     cross join lateral (select * from outbox.log g where g.lane = i and g.pos >= first and g.pos < least(first + rows_max, up_to + 1)) g
     order by g.pos;
end $$;

-- The next events of a row's aggregate in the log, after it and not beyond the lane's cursor: they wait for it.
create function outbox.followers(d outbox.delivery, up_to bigint, rows_max integer) returns table (pos bigint, event_id bigint)
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  select g.pos, g.event_id
    from outbox.log g
    join outbox.event e on e.id = g.event_id
   where g.lane = (select outbox.lane_of((d).hash, t.lanes) from outbox.setting t)
     and g.pos > (d).pos and g.pos <= up_to and g.hash = (d).hash
     and e.aggregate_type = (d).aggregate_type and e.aggregate_id = (d).aggregate_id
     and not exists (select from outbox.delivery x
                      where x.subscription = (d).subscription and x.lane = (d).lane and x.pos = g.pos and x.state in ('discarded', 'delivered', 'unknown'))
     and exists (select from (select f.types, f.aggregates from outbox.filter f
                               where f.subscription = (d).subscription and f.from_pos < g.pos order by f.from_pos desc limit 1) f
                  where outbox.matches(f.types, e.type) and (f.aggregates is null or e.aggregate_type = any (f.aggregates)))
   order by g.pos limit rows_max
$$;

-- The first of them, or null.
create function outbox.follower(d outbox.delivery, up_to bigint, out pos bigint, out event_id bigint)
language sql stable as $$
  select f.pos, f.event_id from outbox.followers(d, up_to, 1) f
$$;

-- What an aggregate's open rows mean for its next event.
create function outbox.mark(s outbox.subscription, at_lane smallint, of_type text, of_id text) returns text
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select case when bool_or(d.state = 'retrying' or (s).dead_holds) then 'held' when count(*) > 0 then 'dead' end
    from outbox.delivery d
   where d.subscription = (s).name and d.lane = at_lane and d.hash = outbox.hash(of_type, of_id) and d.state in ('retrying', 'dead')
     and d.aggregate_type = of_type and d.aggregate_id = of_id
$$;

-- The next events of the lanes, one row for each that has some (and one more for its retries that are due). Heads and
-- payloads are lists separated by U+001E: thousands of rows of a dozen columns cost both sides more than the events
-- themselves. `through` says how far the lane was scanned (null: only as far as its last event). The first row names no
-- lane, and the head up to which is read: the subscription may be read. No row at all: it is paused, held or outdated.
create function outbox.read(
  sub text, rev integer, lanes smallint[], after bigint[], count_max integer, bytes_max bigint, scan_max integer, probing boolean,
  filled boolean[] default null)   -- lanes whose last read met a limit
returns table (lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
language plpgsql
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
  if s.name is null or s.revision > rev or s.mode = 'paused' or (s.held_cause is not null and not probing) then
    return;
  end if;
  -- Nothing beyond this head is read: kinds are looked up after it, so a pair numbered for the first time is among them.
  head := coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0);
  through := head;
  return next;
  through := null;
  if s.mode <> 'dry-run' and exists (select from outbox.delivery d where d.subscription = sub and d.lane = any (lanes) and d.next_attempt_at <= now) then
    due := true;
    for lane, got, heads, payloads in
      select d.lane, count(*), string_agg(d.head, E'\x1e' order by d.n), string_agg(d.payload, E'\x1e' order by d.n)
        from outbox.read_due(s, lanes, count_max, bytes_max, now) with ordinality as d(lane, head, payload, n) group by d.lane
    loop
      used := used + got;
      return next;
    end loop;
  end if;
  if s.ledger and s.mode <> 'dry-run' then
    return;
  end if;
  marked := (s.ordered or s.coalesced) and s.mode <> 'dry-run'
    and exists (select from outbox.delivery d where d.subscription = sub and d.lane = any (lanes) and d.state in ('retrying', 'dead'));
  -- Lanes that stand under the same filter are read together: mostly all of them.
  for f in
    select c.types, c.aggregates, least(head, c.next) as until, coalesce(c.next <= head, false) as ends, u.*
      from (select x.types, x.aggregates, x.from_pos, lead(x.from_pos) over (order by x.from_pos) as next
              from outbox.filter x where x.subscription = sub) c
     cross join lateral (
       select array_agg(w.lane) as lanes, array_agg(w.after) as after, array_agg(coalesce(w.filled, false)) as filled, count(*)::integer as number
         from unnest(read.lanes, read.after, read.filled) as w(lane, after, filled)
        where w.after >= c.from_pos and (c.next is null or w.after < c.next)) u
     where u.number > 0
  loop
    kinds := outbox.kinds(f.types, f.aggregates);
    if s.lanes > 1 then
      return query select * from outbox.read_lanes(s, f.lanes, f.after, f.filled, f.until, f.ends, kinds,
        (count_max - used) * f.number / cardinality(lanes), bytes_max * f.number / cardinality(lanes), scan_max, marked);
    else
      return query select * from outbox.read_single(s, f.after[1], f.until, f.ends, kinds, greatest(1, count_max - used), bytes_max, scan_max, marked);
    end if;
  end loop;
end $$;

-- Several lanes under one filter, each with its share of the limits: lanes that were full get what the others leave.
-- Streams from the index into the answer, in order of position: an event's payload is copied once. Written into its caller
-- by the planner, as it must be.
create function outbox.read_lanes(
  s outbox.subscription, lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean, kinds smallint[],
  count_max integer, bytes_max bigint, scan_max integer, marked boolean)
returns table (lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
language sql stable as $$
  select b.lane, false,
         -- Everything matches and no limit was met: what was found is what there is.
         case when r.got < b.budget and kinds is null and not ends and r.bytes < b.bytes then r.last
              when r.got < b.budget then (
                select case when r.got < least(c.matched, b.budget) then null
                            when ends and not exists (select from outbox.scan(false, b.lane, coalesce(c.last, b.after), until, 1))
                            then until else c.last end
                  from (select count(*) filter (where kinds is null or g.kind = any (kinds)) as matched, max(g.pos) as last
                          from outbox.scan(false, b.lane, b.after, until, case when kinds is null then b.budget else scan_max end) g) c) end,
         r.heads, r.payloads, r.kind_max
    from (select w.lane, w.after, greatest(1, bytes_max / w.number) as bytes, greatest(1,
                 case when w.full = 0 or w.full = w.number then count_max / w.number
                      when w.filled then (count_max - (w.number - w.full) * greatest(1, count_max / (4 * w.number))) / w.full
                      else count_max / (4 * w.number) end)::integer as budget
            from (select u.*, count(*) over () as number, count(*) filter (where u.filled) over () as full
                    from unnest(lanes, after, filled) as u(lane, after, filled)
                   -- A lane without news costs one probe; where a filter ends, every lane has to be looked at.
                   where ends or exists (select from outbox.log l where l.lane = u.lane and l.pos > u.after and l.pos <= until)) w) b
   cross join lateral (
     -- The common case is written out: a call of head() for each event would cost more than all the rest.
     select count(*) as got, max(z.pos) as last, max(z.before + z.bytes) as bytes, max(z.kind) as kind_max, string_agg(
              case when z.version = 1 and z.kind <> 0 and z.key is null and z.headers is null and m.mark is null
                   then concat_ws(E'\x1f', z.pos, z.event_id, z.kind, date_part('epoch', z.created_at), z.aggregate_id)
                   else outbox.head(z.pos, z.event_id, z.kind, z.created_at, z.aggregate_id, z.version, m.mark,
                     case when z.kind = 0 then z.type || ' ' || z.aggregate_type end, z.key, case when m.mark is distinct from 'held' then z.headers end) end, E'\x1e') as heads,
            string_agg(case when m.mark is distinct from 'held' then coalesce(z.payload::text, '') else '' end, E'\x1e') as payloads
       from (select g.pos, g.event_id, g.kind, g.bytes, g.before, e.version, e.created_at, e.type, e.aggregate_type, e.aggregate_id, e.key, e.headers, e.payload
               from (select w.pos, w.event_id, w.kind, w.bytes, sum(w.bytes) over (order by w.pos rows unbounded preceding) - w.bytes as before
                       from (select c.pos, c.event_id, c.kind, c.bytes
                               from (select l.pos, l.event_id, l.kind, l.bytes from outbox.log l
                                      where l.lane = b.lane and l.pos > b.after and l.pos <= until order by l.pos
                                      limit case when kinds is null then b.budget else scan_max end) c
                              where kinds is null or c.kind = any (kinds) order by c.pos limit b.budget) w) g
               left join outbox.event e on e.id = g.event_id
              where g.before < b.bytes) z
      cross join lateral (select case when marked then outbox.mark(s, b.lane, z.aggregate_type, z.aggregate_id) end as mark) m) r
$$;

-- The same for a subscription with a single lane, which reads all lanes of the log by position.
create function outbox.read_single(
  s outbox.subscription, after bigint, until bigint, ends boolean, kinds smallint[], budget integer, bytes_max bigint, scan_max integer, marked boolean)
returns table (lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  rows_max integer := case when kinds is null then budget else scan_max end;
  got      integer;
begin
  lane := 0;
  due := false;
  select count(*), max(r.kind), string_agg(r.head, E'\x1e'), string_agg(r.payload, E'\x1e') into got, kind_max, heads, payloads
    from (select z.kind, outbox.head(z.pos, z.event_id, z.kind, z.created_at, z.aggregate_id, z.version, m.mark,
                   case when z.kind = 0 then z.type || ' ' || z.aggregate_type end, z.key, case when m.mark is distinct from 'held' then z.headers end) as head,
                 case when m.mark is distinct from 'held' then coalesce(z.payload::text, '') else '' end as payload
            from (select g.pos, g.event_id, g.kind, e.version, e.created_at, e.type, e.aggregate_type, e.aggregate_id, e.key, e.headers, e.payload
                    from (select w.*, sum(w.bytes) over (order by w.pos rows unbounded preceding) - w.bytes as before
                            from (select c.* from outbox.scan(true, 0::smallint, after, until, rows_max) c
                                   where kinds is null or c.kind = any (kinds) order by c.pos limit budget) w) g
                    left join outbox.event e on e.id = g.event_id
                   where g.before < bytes_max) z
           cross join lateral (select case when marked then outbox.mark(s, 0::smallint, z.aggregate_type, z.aggregate_id) end as mark) m
           order by z.pos) r;
  if got < budget then
    select case when got < least(c.matched, budget) then null
                when ends and not exists (select from outbox.scan(true, 0::smallint, coalesce(c.last, after), until, 1))
                then until else c.last end into through
      from (select count(*) filter (where kinds is null or g.kind = any (kinds)) as matched, max(g.pos) as last
              from outbox.scan(true, 0::smallint, after, until, rows_max) g) c;
  end if;
  return next;
end $$;

-- Deliveries that are due again, and the pending ones of a ledger.
create function outbox.read_due(s outbox.subscription, lanes smallint[], count_max integer, bytes_max bigint, now timestamptz)
returns table (lane smallint, head text, payload text)
language sql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  with head as materialized (
    select d.* from outbox.delivery d
     where d.subscription = (s).name and d.lane = any (lanes) and d.next_attempt_at <= now
       and not ((s).ordered and not (s).coalesced and exists (
         select from outbox.delivery o where o.subscription = d.subscription and o.lane = d.lane and o.hash = d.hash
            and o.aggregate_type = d.aggregate_type and o.aggregate_id = d.aggregate_id and o.pos < d.pos and o.state <> 'delivered'
            and (o.state in ('pending', 'retrying', 'sending') or (o.state = 'dead' and (s).dead_holds and not (s).ledger))))
     order by d.next_attempt_at, d.pos limit count_max
  ), due as materialized (
    -- What waits behind a head goes with it, in order: else an aggregate that failed once could catch up only event by event.
    select * from (
      select h.lane, h.pos, h.event_id, h.attempts, h.aggregate_type, h.aggregate_id, h.correction, h.event from head h
      union all
      select h.lane, f.pos, f.event_id, 0, h.aggregate_type, h.aggregate_id, null, null
        from head h
       cross join lateral outbox.cursor_of((s).name, h.lane) c
       cross join lateral outbox.followers(h, least(c.pos, (
         select min(o.pos) - 1 from outbox.delivery o
          where o.subscription = h.subscription and o.lane = h.lane and o.hash = h.hash and o.state <> 'delivered'
            and o.aggregate_type = h.aggregate_type and o.aggregate_id = h.aggregate_id and o.pos > h.pos)), least(count_max, 500) - 1) f
       where (s).ordered and not (s).coalesced and not (s).ledger and count_max > 1) u
     order by u.pos limit count_max
  ), sized as (
    select d.*, e.version as e_version, e.created_at as e_created_at, e.type as e_type, e.key as e_key, e.headers as e_headers, e.payload as e_payload,
           coalesce(sum(e.bytes) over (order by d.pos rows unbounded preceding), 0) - coalesce(e.bytes, 0) as before
      from due d left join outbox.event e on e.id = d.event_id
  )
  select z.lane, outbox.head(z.pos, z.event_id, 0::smallint, coalesce(z.e_created_at, (z.event ->> 'created_at')::timestamptz), z.aggregate_id,
           coalesce(z.e_version, (z.event ->> 'version')::smallint), 'due ' || z.attempts,
           coalesce(z.e_type, z.event ->> 'type') || ' ' || z.aggregate_type, coalesce(z.e_key, z.event ->> 'key'),
           coalesce(z.correction -> 'headers', z.e_headers, z.event -> 'headers')),
         coalesce(coalesce(z.correction -> 'payload', z.e_payload, z.event -> 'payload')::text, '')
    from sized z where z.before < bytes_max order by z.pos
$$;

-- Ledger sinks: one row an event and the cursor, in one transaction; from then on the rows are the truth.
create function outbox.enlist(sub text, rev integer, who text, lanes smallint[], fences bigint[], count_max integer, scan_max integer, attempts_max integer)
returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s     outbox.subscription;
  at    record;
  last  bigint;
  total integer := 0;
  n     integer;
begin
  perform from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  select * into s from outbox.subscription where name = sub;
  if s.revision > rev or s.mode <> 'live' or s.held_cause is not null then
    return 0;
  end if;
  for at in
    select l.lane, l.fence, c.fence as cursor_fence, c.pos, c.delivered, f.types, f.aggregates,
           (select min(x.from_pos) from outbox.filter x where x.subscription = sub and x.from_pos > c.pos) as until
      from outbox.lane l
      join unnest(lanes, fences) as w(lane, fence) on w.lane = l.lane and w.fence = l.fence
     cross join lateral outbox.cursor_of(sub, l.lane) c
     cross join lateral (select * from outbox.filter x where x.subscription = sub and x.from_pos <= c.pos order by x.from_pos desc limit 1) f
     where l.subscription = sub and l.owner = who
  loop
    with scanned as materialized (
      select * from outbox.scan(s.lanes = 1, at.lane, at.pos, coalesce(at.until, 9223372036854775806), scan_max)
    ), hit as materialized (
      select g.* from scanned g join outbox.event e on e.id = g.event_id
       where outbox.matches(at.types, e.type) and (at.aggregates is null or e.aggregate_type = any (at.aggregates))
       order by g.pos limit count_max
    ), put as (
      insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, attempts_max, next_attempt_at, updated_at)
      select sub, at.lane, h.pos, h.event_id, e.aggregate_type, e.aggregate_id, h.hash, 'pending', enlist.attempts_max, outbox.clock(), outbox.clock()
        from hit h join outbox.event e on e.id = h.event_id
    )
    select (select count(*) from hit), case when (select count(*) from hit) = count_max then (select max(h.pos) from hit h)
            else coalesce((select max(g.pos) from scanned g), at.until) end into n, last;
    if last > at.pos then
      insert into outbox.cursor (subscription, lane, fence, pos, delivered) values (sub, at.lane, at.fence, last, at.delivered);
      delete from outbox.cursor c where c.subscription = sub and c.lane = at.lane and c.fence = at.cursor_fence and c.pos = at.pos;
    end if;
    total := total + n;
  end loop;
  return total;
end $$;

-- Recorded right before the effect, under the lane's fence. False: the lease is lost, do not send.
create function outbox.sending(sub text, who text, of_lane smallint, of_fence bigint, of_pos bigint, note json) returns boolean
language plpgsql as $$
begin
  perform from outbox.lane l where l.subscription = sub and l.lane = of_lane and l.owner = who and l.fence = of_fence for update;
  if not found then
    return false;
  end if;
  update outbox.delivery d set state = 'sending', fence = of_fence, attempts = d.attempts + 1, next_attempt_at = null,
         updated_at = outbox.clock(), receipt = coalesce(note, d.receipt)
   where d.subscription = sub and d.lane = of_lane and d.pos = of_pos and d.state in ('pending', 'retrying');
  return found;
end $$;
