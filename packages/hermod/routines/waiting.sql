-- What waits for workers, asked once for all idle subscriptions: an idle one has no poll of its own. Nothing here reads
-- more of the log than was numbered since the last look.

-- Lanes that could be claimed now although no news told of them: due deliveries, messages whose sender vanished, second
-- sends, replays, probes. The first goes from one (subscription, lane) that has open rows to the next.
create or replace function outbox.rows_waiting(head bigint, now timestamptz) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  with recursive open as (
    (select d.subscription, d.lane from outbox.delivery d where d.next_attempt_at is not null
      order by d.subscription, d.lane limit 1)
    union all
    select n.subscription, n.lane from open o cross join lateral (
      select d.subscription, d.lane from outbox.delivery d
       where d.next_attempt_at is not null and (d.subscription, d.lane) > (o.subscription, o.lane)
       order by d.subscription, d.lane limit 1) n
  ), found as (
    select o.subscription, o.lane from open o
     where exists (select from outbox.delivery d where d.subscription = o.subscription and d.lane = o.lane
                     and d.next_attempt_at <= now)
        or exists (select from outbox.delivery d where d.subscription = o.subscription and d.lane = o.lane
                     and d.next_attempt_at > outbox.last_due(now))
    union all
    select d.subscription, d.lane from outbox.subscription s
      join outbox.delivery d on d.subscription = s.name and d.state = 'sending' where s.ledger
    union all
    select l.subscription, l.lane from outbox.lane l where l.again_at <= now
    union all
    select r.subscription, r.lane from outbox.journey j join outbox.replay r on r.subscription = j.subject
     where j.ended_at is null and j.kind = 'replay' and r.journey = j.id and j.id = outbox.replay_of(j.subject)
       and not r.met
    union all
    select l.subscription, l.lane from outbox.subscription s join outbox.lane l on l.subscription = s.name
     cross join lateral outbox.cursor_of(s.name, l.lane) c
     where s.held_cause is not null and outbox.is_over(s.probe_at, now) and c.pos < head
       and (s.lanes = 1 or exists (select from outbox.log g where g.lane = l.lane and g.pos > c.pos))
  )
  select distinct s.name from found f
    join outbox.subscription s on s.name = f.subscription
    join outbox.lane l on l.subscription = f.subscription and l.lane = f.lane
   where s.mode = 'live' and outbox.is_over(l.lease_until, now)
     and (s.held_cause is null or outbox.is_over(s.probe_at, now))
$$;

-- Where these subscriptions stand, of which something was numbered up to `heard` (null: up to `head`). `behind`: not
-- everything of it was delivered or passed. `free`: a lane of it could be claimed now.
create or replace function outbox.standing(subs text[], heard bigint[], head bigint, now timestamptz)
returns table (name text, behind boolean, free boolean)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  select u.name, coalesce(bool_or(b.behind), false),
         coalesce(bool_or(b.behind and outbox.is_over(l.lease_until, now) and s.mode <> 'paused'
                          and (s.held_cause is null or outbox.is_over(s.probe_at, now))), false)
    from (select n.name, coalesce(n.heard, head) as heard from unnest(subs, heard) as n(name, heard)) u
    join outbox.subscription s on s.name = u.name
    join outbox.lane l on l.subscription = s.name
   cross join lateral outbox.stands_at(s.name, s.mode, l.lane) c
   cross join lateral (
     select c.pos < u.heard and (s.lanes = 1 or exists (
       select from outbox.log g where g.lane = l.lane and g.pos > c.pos and g.pos <= u.heard)) as behind) b
   group by u.name
$$;

-- One look. `known`: kinds up to here were told; null = nothing is known. Returns the kinds numbered since then and how
-- far they were read (`upto`; at most `rows_max` rows), who has work that could be claimed (`waiting`), and which of
-- the `subs` have nothing left of what they heard of (`clear`). `heard` null: they are asked about all there is.
create or replace function outbox.look(known bigint, rows_max integer, subs text[], heard bigint[])
returns table (head bigint, upto bigint, kinds smallint[], waiting text[], clear text[])
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  head := coalesce((select s.pos from outbox.step s order by s.id desc limit 1), 0);
  upto := head;
  if known < head then
    select coalesce(max(g.pos), head), array_agg(distinct g.kind) into upto, kinds
      from outbox.scan(true, 0::smallint, known, head, rows_max) g;
  end if;
  select array_agg(s.name) filter (where s.free), array_agg(s.name) filter (where not s.behind) into waiting, clear
    from outbox.standing(subs, heard, head, now) s;
  waiting := coalesce(waiting, '{}') || array(select outbox.rows_waiting(head, now));
  return next;
end $$;

-- Moves the cursors of free lanes past events that their subscription does not listen to: whoever hears nothing is not
-- woken for them, but retention and lag look at cursors. The newest `rows_max` positions are read once for all of them;
-- a lane further behind has a backlog, and its loops pass it.
create or replace function outbox.pass_idle(every_ms integer, rows_max integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
set max_parallel_workers_per_gather = 0 as $$
declare
  now    timestamptz := outbox.clock();
  head   bigint := (select s.pos from outbox.step s order by s.id desc limit 1);
  floor  bigint;
  names  text[];
  lanes  smallint[];
begin
  if head is null or not outbox.upkeep_turn('pass', every_ms) then
    return;
  end if;
  -- Lock first, then look, in separate statements. Whoever is busy with a lane moves its cursor himself.
  select array_agg(f.subscription), array_agg(f.lane) into names, lanes
    from (select l.subscription, l.lane from outbox.lane l
            join outbox.subscription s on s.name = l.subscription
           where l.owner is null and outbox.is_over(l.lease_until, now) and l.parked is null and l.again_at is null
             and s.mode = 'live' and s.held_cause is null
           order by l.subscription, l.lane for update of l skip locked) f;
  select min(c.pos) into floor from unnest(names, lanes) as u(name, lane)
   cross join lateral outbox.cursor_of(u.name, u.lane) c where c.pos >= head - rows_max;
  with present as materialized (
    select g.lane, g.kind, max(g.pos) as last
      from outbox.setting t cross join lateral generate_series(0, t.lanes - 1) i(lane)
     cross join lateral (select * from outbox.log x where x.lane = i.lane and x.pos > floor and x.pos <= head) g
     group by g.lane, g.kind
  ), at as materialized (
    select u.name, u.lane, s.lanes = 1 as single, l.fence, c.fence as cursor_fence, c.pos, c.delivered, f.types,
           f.aggregates
      from unnest(names, lanes) as u(name, lane)
      join outbox.subscription s on s.name = u.name
      join outbox.lane l on l.subscription = u.name and l.lane = u.lane
     cross join lateral outbox.cursor_of(u.name, u.lane) c
     cross join lateral (select x.types, x.aggregates, x.from_pos from outbox.filter x where x.subscription = u.name
                          order by x.from_pos desc limit 1) f
     -- The newest filter holds for all of what is passed; else its loops look at each part by itself.
     where c.pos >= floor and c.pos < head and f.from_pos <= c.pos
  ), filters as materialized (
    select d.types, d.aggregates, t.pattern
      from (select distinct a.types, a.aggregates from at a) d cross join lateral unnest(d.types) as t(pattern)
  ), named as materialized (
    -- Every pattern that matches it: `*`, `a.*` and `a.b` for `a.b`. Patterns are then compared by equality: 2,000
    -- subscriptions take 0.1 s, and took 12 s when each was matched with each kind.
    select k.code, k.aggregate_type, x.pattern from outbox.kind k
     cross join lateral (
       select '*' union all select k.type union all
       select array_to_string((string_to_array(k.type, '.'))[1:i], '.') || '.*'
         from generate_series(1, cardinality(string_to_array(k.type, '.')) - 1) i) as x(pattern)
     where k.code in (select p.kind from present p)
  ), heard as materialized (
    select f.types, f.aggregates, p.lane, max(p.last) as last
      from filters f
      join named n on n.pattern = f.pattern and (f.aggregates is null or n.aggregate_type = any (f.aggregates))
      join present p on p.kind = n.code
     group by f.types, f.aggregates, p.lane
    union all
    -- A kind without a code may be anything.
    select f.types, f.aggregates, p.lane, p.last from filters f join present p on p.kind = 0
  ), passing as materialized (
    select a.* from at a
     -- A lane without events stays where it is: nobody waits for it.
     where exists (select from present p where (a.single or p.lane = a.lane) and p.last > a.pos) and not exists (
      select from heard h where h.types = a.types and h.aggregates is not distinct from a.aggregates
         and (a.single or h.lane = a.lane) and h.last > a.pos)
  ), put as (
    insert into outbox.cursor (subscription, lane, fence, pos, delivered)
    select p.name, p.lane, p.fence, head, p.delivered from passing p
  )
  delete from outbox.cursor c using passing p
   where c.subscription = p.name and c.lane = p.lane and c.fence = p.cursor_fence and c.pos = p.pos;
end $$;
