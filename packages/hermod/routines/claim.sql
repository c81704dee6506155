-- claim: leases lanes that have work. Plans are pinned here and wherever the log is read: on partitioned tables the
-- planner otherwise changes to a hash join over everything when statistics change.

-- Leases up to `lanes_max` free lanes that have work. An idle call writes nothing, not even a transaction id.
-- `call_ms`: how long a call of the former owner may still take; null: it cannot do harm (again.sql).
create or replace function outbox.claim(
  sub text, rev integer, who text, lanes_max integer, lease_ms integer, call_ms integer default null)
returns table (lane smallint, fence bigint, pos bigint, again_ms integer)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s          outbox.subscription;
  now        timestamptz := outbox.clock();
  head       bigint;
  era        integer;
  replayed   bigint;
  candidates smallint[];
  taken      smallint[];
  expired    smallint[];
begin
  select * into s from outbox.subscription where name = sub;
  if s.name is null then
    perform outbox.refuse('HM022', format('HMD_SUBSCRIPTION_UNKNOWN: %s', sub));
  elsif s.revision > rev then
    perform outbox.refuse('HM021', format('HMD_SUBSCRIPTION_OUTDATED: %s has revision %s, this worker has %s', sub,
      s.revision, rev));
  elsif s.mode = 'paused' then
    return;
  end if;
  select st.pos, st.epoch into head, era from outbox.step st order by st.id desc limit 1;
  replayed := case when s.mode = 'live' then outbox.replay_of(sub) end;
  -- All of them: loops that claim at the same moment skip each other's lanes, and must find others.
  candidates := array(
    select l.lane from outbox.lane l
     cross join lateral outbox.stands_at(sub, s.mode, l.lane) c
     where l.subscription = sub and outbox.is_over(l.lease_until, now)
       and (c.pos < head and (s.lanes = 1 or exists (select from outbox.log g where g.lane = l.lane and g.pos > c.pos))
            or exists (select from outbox.delivery d where d.subscription = sub and d.lane = l.lane
                       and d.next_attempt_at <= now)
            or exists (select from outbox.delivery d where d.subscription = sub and d.lane = l.lane
                       and d.next_attempt_at > outbox.last_due(now))
            or s.ledger and exists (select from outbox.delivery d
                                    where d.subscription = sub and d.lane = l.lane and d.state = 'sending')
            or l.again_at <= now and s.mode = 'live'
            or replayed is not null and exists (select from outbox.replay r
                 where r.subscription = sub and r.journey = replayed and r.lane = l.lane and not r.met))
     order by random());
  if cardinality(candidates) = 0 then
    return;
  end if;
  with free as (
    select l.lane, l.owner is not null as expired from outbox.lane l
     where l.subscription = sub and l.lane = any (candidates) and outbox.is_over(l.lease_until, now)
     order by array_position(candidates, l.lane) limit lanes_max for update skip locked
  ), mine as (
    update outbox.lane l set owner = who, lease_until = now + lease_ms * interval '1 millisecond',
           -- Above all fences of earlier epochs, which may have been lost.
           fence = greatest(l.fence, coalesce(era, 0)::bigint << 32) + 1
      from free f where l.subscription = sub and l.lane = f.lane
    returning l.lane, f.expired
  )
  select array_agg(m.lane), array_agg(m.lane) filter (where m.expired) into taken, expired from mine m;
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
  if call_ms is not null and not s.ledger and cardinality(expired) > 0 then
    perform outbox.note_again(sub, expired, call_ms);
  end if;
  -- A statement of its own: a settle locks a lane without changing it, so the snapshot from before the locks may have
  -- an older cursor.
  return query
    select l.lane, l.fence, c.pos, (extract(epoch from greatest(l.again_at, now) - now) * 1000)::integer
      from outbox.lane l cross join lateral outbox.stands_at(sub, s.mode, l.lane) c
     where l.subscription = sub and l.lane = any (taken);
end $$;
