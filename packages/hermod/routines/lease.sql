-- What the owner of lanes does with its leases: renew, release, look. `owner` and `fence` say whose a lane is, here, in
-- settle, park and sending: an owner whose `lease_until` has passed goes on until somebody else has claimed the lane.
-- Lanes are locked in order of lane, as by settle: two orders could deadlock. Here and wherever a worker writes to
-- lanes or their subscription, `lock_timeout` ends the wait for somebody else's lock well before the client gives the
-- connection up (bounded.ts): a server process that waits for a lock does not notice that its client is gone.

-- Which of these lanes nobody else has locked.
create or replace function outbox.unlocked(sub text, lanes smallint[]) returns setof smallint
language sql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select l.lane from outbox.lane l where l.subscription = sub and l.lane = any (lanes)
   order by l.lane for update skip locked
$$;

-- Still mine? Returns the lanes whose lease was extended; the others are lost.
create or replace function outbox.renew(sub text, who text, lanes smallint[], fences bigint[], lease_ms integer)
returns setof smallint
language sql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  update outbox.lane l set lease_until = outbox.clock() + lease_ms * interval '1 millisecond'
    from unnest(lanes, fences) as mine(lane, fence)
   where l.subscription = sub and l.lane = mine.lane and l.fence = mine.fence and l.owner = who
  returning l.lane
$$;

create or replace function outbox.release(sub text, who text, lanes smallint[], fences bigint[]) returns void
language sql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  update outbox.lane l set owner = null, lease_until = '-infinity'
    from unnest(lanes, fences) as mine(lane, fence)
   where l.subscription = sub and l.lane = mine.lane and l.fence = mine.fence and l.owner = who
$$;

-- The owner of a lane that lost it while a call may be under way. Whoever claims the lane next sees a take-over.
create or replace function outbox.interrupted(owner text) returns text
language sql immutable parallel safe
return case when starts_with(owner, 'interrupted ') then owner else 'interrupted ' || owner end;

-- Gives lanes back although a call of theirs may still be under way: to the next owner it is a take-over (again.sql).
create or replace function outbox.abandon(sub text, who text, lanes smallint[], fences bigint[]) returns void
language sql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  update outbox.lane l set owner = outbox.interrupted(l.owner), lease_until = '-infinity'
    from unnest(lanes, fences) as mine(lane, fence)
   where l.subscription = sub and l.lane = mine.lane and l.fence = mine.fence and l.owner = who
$$;

-- After a lost answer: which lanes are still mine, and where do they stand?
create or replace function outbox.leased(sub text, who text, lanes smallint[], fences bigint[])
returns table (lane smallint, pos bigint)
language sql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select l.lane, c.pos
    from outbox.subscription s
    join outbox.lane l on l.subscription = s.name
    join unnest(leased.lanes, leased.fences) as mine(lane, fence) on l.lane = mine.lane and l.fence = mine.fence
   cross join lateral outbox.stands_at(sub, s.mode, l.lane) c
   where s.name = sub and l.owner = who
$$;
