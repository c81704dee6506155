-- What an operator decides: retry, discard. The caller has locked the lane, and records the decision in one audit
-- row.
--
--   dead, unknown, retrying ──retry──▶ retrying ──delivered──▶ walks on to the next event of its aggregate
--   dead, unknown, retrying, pending ──discard──▶ discarded; what it blocked goes on the same way

-- Events of these aggregates in the log, after a position each. One pass over each lane, whatever the number of rows:
-- the join must not be made by looking again for every one of them.
create or replace function outbox.later_events(lanes smallint[], hashes integer[], positions bigint[])
returns table (hash integer, pos bigint, event_id bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  of_lane record;
begin
  for of_lane in select u.lane, min(u.pos) as after from unnest(lanes, positions) u(lane, pos) group by u.lane loop
    return query
      select g.hash, g.pos, g.event_id
        from outbox.log g
        join unnest(lanes, hashes, positions) t(lane, hash, after) on t.hash = g.hash
       where g.lane = of_lane.lane and g.pos > of_lane.after and t.lane = of_lane.lane and g.pos > t.after;
  end loop;
end $$;

-- Which of these rows have an event of their aggregate after them that was delivered: sending them now would undo it.
-- An event up to the cursor was delivered if it has no row that says otherwise and no row before it that holds it back.
create or replace function outbox.superseded(s outbox.subscription, lanes smallint[], positions bigint[])
returns bigint[]
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_mergejoin = off set enable_bitmapscan = off
set jit = off set max_parallel_workers_per_gather = 0 as $$
begin
  if not (s.ordered or s.coalesced) then
    return '{}';
  end if;
  return array(
    with target as materialized (
      select d.lane, d.pos, d.hash, d.aggregate_type, d.aggregate_id, outbox.lane_of(d.hash, t.lanes) as log_lane
        from outbox.setting t cross join unnest(superseded.lanes, superseded.positions) u(lane, pos)
       cross join lateral (select x.* from outbox.delivery x
                            where x.subscription = s.name and x.lane = u.lane and x.pos = u.pos limit 1) d
    ), one as materialized (
      select a.lane, a.hash, a.aggregate_type, a.aggregate_id, min(a.pos) as pos, min(a.log_lane) as log_lane
        from target a group by a.lane, a.hash, a.aggregate_type, a.aggregate_id
    ), found as materialized (
      select l.* from (select array_agg(o.log_lane) as lanes, array_agg(o.hash) as hashes, array_agg(o.pos) as positions
                         from one o) w
       cross join lateral outbox.later_events(w.lanes, w.hashes, w.positions) l
    ), newest as materialized (
      select o.lane, o.aggregate_type, o.aggregate_id, max(g.pos) as pos
        from one o
        join found g on g.hash = o.hash
       cross join lateral outbox.cursor_of(s.name, o.lane) c
       cross join lateral (select e.type, e.aggregate_type, e.aggregate_id from outbox.event e
                            where e.id = g.event_id limit 1) e
       where g.pos <= c.pos and e.aggregate_type = o.aggregate_type and e.aggregate_id = o.aggregate_id
         and outbox.heard(s.name, g.pos, e.type, e.aggregate_type)
         and not exists (select from outbox.delivery x where x.subscription = s.name and x.lane = o.lane
                            and x.pos = g.pos and x.state <> 'delivered')
         and not exists (select from outbox.delivery h where not s.ledger and h.subscription = s.name
                            and h.lane = o.lane and h.hash = o.hash and h.aggregate_type = o.aggregate_type
                            and h.aggregate_id = o.aggregate_id and h.state <> 'delivered' and h.pos < g.pos
                            and (h.state = 'retrying' or (h.state = 'dead' and s.dead_holds)))
       group by o.lane, o.aggregate_type, o.aggregate_id
    )
    select t.pos from target t
      join newest n on n.lane = t.lane and n.aggregate_type = t.aggregate_type and n.aggregate_id = t.aggregate_id
     where n.pos > t.pos);
end $$;

-- A call with this row may be under way: its result must not count. The owner loses the lane, but the lease runs on, so
-- that nobody sends what comes next before that call has ended or its deadline has passed. An owner without a call
-- under way gives the lane back at once. A ledger does not need this: its rows are checked right before the effect.
create or replace function outbox.interrupt(s outbox.subscription, d outbox.delivery) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if s.ledger or d.next_attempt_at is null or d.next_attempt_at > outbox.clock() then
    return false;
  end if;
  update outbox.lane l set owner = outbox.interrupted(l.owner)
   where l.subscription = s.name and l.lane = d.lane and l.owner not like 'interrupted %'
     and l.lease_until > outbox.clock();
  return found;
end $$;

-- Given up. What was held behind it goes on. Most rows hold nothing back and are not being sent: these need no look.
create or replace function outbox.discard_row(
  s outbox.subscription, d outbox.delivery, why text, now timestamptz, reach jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if d.next_attempt_at <= now then
    perform outbox.interrupt(s, d);
  end if;
  update outbox.delivery x set state = 'discarded', next_attempt_at = null, reason = why, updated_at = now
   where x.subscription = s.name and x.lane = d.lane and x.pos = d.pos;
  if s.ledger or not (d.state = 'retrying' or (d.state = 'dead' and s.dead_holds)) then
    return;
  elsif s.coalesced then
    perform outbox.walk_to_newest(d, reach);
  elsif s.ordered then
    perform outbox.walk_on(d, reach, true);
  end if;
end $$;

-- Decides some hundred rows under the locks of their lanes; more would keep the owners waiting. Each row is read again
-- right before: the decision on the one before it may have changed it.
create or replace function outbox.decide(
  sub text, verb text, lanes smallint[], positions bigint[], states text[], forced boolean, why text, out done bigint[],
  out superseded bigint[])
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  s   outbox.subscription;
  d   outbox.delivery;
  t   record;
  now timestamptz := outbox.clock();
  reach jsonb;
begin
  done := '{}';
  superseded := '{}';
  select * into s from outbox.subscription x where x.name = sub;
  if verb = 'retry' and not forced then
    superseded := outbox.superseded(s, decide.lanes, decide.positions);
  elsif verb = 'discard' and not s.ledger then
    reach := outbox.reach(s, decide.lanes, decide.positions);
  end if;
  for t in select * from unnest(decide.lanes, decide.positions) as u(lane, pos)
            where u.pos <> all (decide.superseded) order by u.pos loop
    if verb = 'retry' then
      -- A new budget of attempts; when it first failed, and what was tried, stays.
      update outbox.delivery x set state = 'retrying', attempts = 0, next_attempt_at = now, updated_at = now
       where x.subscription = sub and x.lane = t.lane and x.pos = t.pos and x.state = any (decide.states);
      continue when not found;
    else
      select * into d from outbox.delivery x where x.subscription = sub and x.lane = t.lane and x.pos = t.pos;
      continue when d.pos is null or not d.state = any (decide.states);
      perform outbox.discard_row(s, d, why, now, reach);
    end if;
    done := done || t.pos;
  end loop;
end $$;

-- Adds to the audit row of a decision that is carried out in several transactions. Only to one that is still open: what
-- is closed never changes. Runs as the owner, since nobody else may change an audit row.
create or replace function outbox.add_to_decision(request text, more bigint[], left_out bigint, ended boolean)
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update outbox.audit a
     set count = a.count + cardinality(more),
         after = (a.after - case when ended then 'open' else '' end)
           || jsonb_build_object('done', a.count + cardinality(more),
                'superseded', (a.after ->> 'superseded')::bigint + left_out,
                'positions', (a.after -> 'positions') || to_jsonb(more::text[]))
   where a.request_id = request and a.after ? 'open'
$$;
