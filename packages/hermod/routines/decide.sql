-- What an operator decides: retry, discard. The caller has locked the lane, and records the decision in one audit
-- row.
--
--   dead, unknown, retrying ──retry──▶ retrying ──delivered──▶ walks on to the next event of its aggregate
--   dead, unknown, retrying, pending ──discard──▶ discarded; what it held back goes on the same way

-- A later event of the same aggregate that was delivered: sending this row now would undo it. Null: none.
create or replace function outbox.newer_delivered(s outbox.subscription, d outbox.delivery) returns bigint
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
  select g.pos
    from outbox.setting t
   cross join lateral outbox.cursor_of((d).subscription, (d).lane) c
    join outbox.log g on g.lane = outbox.lane_of((d).hash, t.lanes)
    join outbox.event e on e.id = g.event_id
   where ((s).ordered or (s).coalesced) and g.pos > (d).pos and g.pos <= c.pos and g.hash = (d).hash
     and e.aggregate_type = (d).aggregate_type and e.aggregate_id = (d).aggregate_id
     and outbox.heard((d).subscription, g.pos, e.type, e.aggregate_type)
     and not exists (select from outbox.delivery x where x.subscription = (d).subscription and x.lane = (d).lane
                        and x.pos = g.pos and x.state <> 'delivered')
     and not exists (select from outbox.delivery o where not (s).ledger and o.subscription = (d).subscription
                     and o.lane = (d).lane
                        and o.hash = (d).hash and o.aggregate_type = (d).aggregate_type
                          and o.aggregate_id = (d).aggregate_id and o.state <> 'delivered'
                        and o.pos < g.pos and (o.state = 'retrying' or (o.state = 'dead' and (s).dead_holds)))
   order by g.pos limit 1
$$;

-- A call with this row may be under way: its result must not count. The owner loses the lane, but the lease runs on, so
-- that nobody sends what comes next before that call has ended or its deadline has passed. An owner without a call
-- under way gives the lane back at once. A ledger does not need this: its rows are checked right before the effect.
create or replace function outbox.interrupt(s outbox.subscription, d outbox.delivery) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if s.ledger or d.next_attempt_at is null or d.next_attempt_at > outbox.clock() then
    return false;
  end if;
  update outbox.lane l set owner = 'interrupted ' || l.owner
   where l.subscription = s.name and l.lane = d.lane and l.owner not like 'interrupted %'
     and l.lease_until > outbox.clock();
  return found;
end $$;

-- Gives a delivery up. Events that were blocked by it are delivered.
create or replace function outbox.discard_row(s outbox.subscription, d outbox.delivery, why text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  up_to bigint := (select c.pos from outbox.cursor_of(s.name, d.lane) c);
begin
  perform outbox.interrupt(s, d);
  update outbox.delivery x set state = 'discarded', next_attempt_at = null, reason = why, updated_at = outbox.clock()
   where x.subscription = s.name and x.lane = d.lane and x.pos = d.pos;
  if s.ledger or not (d.state = 'retrying' or (d.state = 'dead' and s.dead_holds)) then
    return;
  elsif s.coalesced then
    perform outbox.walk_to_newest(d, up_to);
  elsif s.ordered then
    perform outbox.walk_on(d, up_to, true);
  end if;
end $$;

-- Decides many rows. Each is read again right before: the decision on the one before it may have changed it.
create or replace function outbox.decide(
  sub text, verb text, lanes smallint[], positions bigint[], states text[], forced boolean, why text, out done bigint[],
  out superseded bigint[])
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  s outbox.subscription;
  d outbox.delivery;
  t record;
begin
  done := '{}';
  superseded := '{}';
  select * into s from outbox.subscription x where x.name = sub;
  for t in select * from unnest(decide.lanes, decide.positions) as u(lane, pos) order by u.pos loop
    select * into d from outbox.delivery x where x.subscription = sub and x.lane = t.lane and x.pos = t.pos;
    continue when d.pos is null or not d.state = any (decide.states);
    if verb = 'discard' then
      perform outbox.discard_row(s, d, why);
    elsif not forced and outbox.newer_delivered(s, d) is not null then
      superseded := superseded || t.pos;
      continue;
    else
      -- A new budget of attempts; when it first failed, and what was tried, stays.
      update outbox.delivery x set state = 'retrying', attempts = 0, next_attempt_at = outbox.clock(),
        updated_at = outbox.clock()
       where x.subscription = sub and x.lane = t.lane and x.pos = t.pos;
    end if;
    done := done || t.pos;
  end loop;
end $$;
