-- again: after a take-over by expiry, a call of the former owner may still be under way and write last. One call
-- deadline later the newest state of every aggregate it may contain is sent again. Not needed if the destination
-- refuses older versions itself, nor for ledgers, whose rows become `unknown`.

-- Notes what the former owner may have been sending: retries that were due, and the first events above the cursor. An
-- older note that is still open is extended, because it begins earlier.
create or replace function outbox.note_again(sub text, lanes smallint[], call_ms integer) returns void
language sql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  update outbox.lane l
     set again_at = outbox.clock() + call_ms * interval '1 millisecond',
         again_from = least(l.again_from, c.pos),
         again_since = least(l.again_since, c.pos, d.since),
         again_hashes = array(select distinct h from unnest(l.again_hashes || d.hashes) h)
    from unnest(note_again.lanes) as w(lane)
   cross join lateral outbox.cursor_of(sub, w.lane) c
   cross join lateral (select min(r.pos) - 1 as since, coalesce(array_agg(r.hash), '{}') as hashes
                         from (select x.pos, x.hash from outbox.delivery x
                                where x.subscription = sub and x.lane = w.lane and x.next_attempt_at <= outbox.clock()
                                order by x.next_attempt_at limit 5000) r) d
   where l.subscription = sub and l.lane = w.lane
$$;

-- The hashes of these aggregates, and where in the log to look for them. The former owner can have read `rows_max`
-- events, and looked at `scan_max` rows of the log to find them: with a filter that matches few, a read looks at many.
create or replace function outbox.again_wanted(
  sub text, of_lane smallint, rows_max integer, scan_max integer,
  out hashes integer[], out since bigint, out up_to bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s outbox.subscription;
  l outbox.lane;
begin
  select * into s from outbox.subscription x where x.name = sub;
  select * into l from outbox.lane x where x.subscription = sub and x.lane = of_lane;
  up_to := (select c.pos from outbox.cursor_of(sub, of_lane) c);
  since := l.again_since;
  hashes := l.again_hashes || array(
    select distinct f.hash
      from (select g.hash from outbox.scan(s.lanes = 1, of_lane, l.again_from, up_to, scan_max) g
              join outbox.event e on e.id = g.event_id
             where outbox.heard(sub, g.pos, e.type, e.aggregate_type)
             order by g.pos limit rows_max) f);
end $$;

-- The newest delivered event of each of them among the next `rows_max` rows of the log, up to `through`.
create or replace function outbox.again_window(
  sub text, of_lane smallint, wanted integer[], after bigint, up_to bigint, rows_max integer,
  out through bigint, out positions bigint[], out ids bigint[], out hashes integer[], out aggregates text[])
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
begin
  with scanned as materialized (
    select g.* from outbox.scan((select s.lanes = 1 from outbox.subscription s where s.name = sub), of_lane, after,
                                up_to, rows_max) g
  ), newest as (
    select distinct on (e.aggregate_type, e.aggregate_id) g.pos, g.event_id, g.hash,
           e.aggregate_type || '/' || e.aggregate_id as aggregate
      from scanned g join outbox.event e on e.id = g.event_id
     where g.hash = any (wanted) and outbox.heard(sub, g.pos, e.type, e.aggregate_type)
       and not exists (select from outbox.delivery d where d.subscription = sub and d.lane = of_lane
                          and d.pos = g.pos and d.state in ('dead', 'discarded'))
     order by e.aggregate_type, e.aggregate_id, g.pos desc
  )
  select (select case when count(*) < rows_max then up_to else max(g.pos) end from scanned g), array_agg(n.pos),
         array_agg(n.event_id), array_agg(n.hash), array_agg(n.aggregate)
    into through, positions, ids, hashes, aggregates from newest n;
end $$;

-- The newest states were sent: clears the note.
create or replace function outbox.again_done(sub text, who text, of_lane smallint, of_fence bigint) returns void
language sql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
  update outbox.lane l
     set again_at = null, again_from = null, again_since = null, again_hashes = '{}'
   where l.subscription = sub and l.lane = of_lane and l.owner = who and l.fence = of_fence
$$;
