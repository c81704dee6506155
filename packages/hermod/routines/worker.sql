-- Workers: one heartbeat row each, and what they must know of subscriptions and of each other in the same round trip.
-- Only what changed since the last beat is returned: `since` is the snapshot that beat was answered in.

-- `subs`: what this worker serves; null = as before. `asked`: subscriptions to return in any case. `changed` holds the
-- rows that the worker has not seen; `others` the other workers, with their lists where they changed. `unlisted`: the
-- worker's row was pruned, its list has to be sent again.
create or replace function outbox.beat(
  of_id text, of_name text, of_host text, of_pid integer, of_version text, subs text[], of_kinds text[],
  is_draining boolean, alive_ms integer, since pg_snapshot, asked text[])
returns table (seen text, unlisted boolean, others jsonb, changed jsonb, removed text[])
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off as $$
declare
  now timestamptz := outbox.clock();
begin
  unlisted := false;
  if subs is null then
    update outbox.worker w set heartbeat_at = now, draining = is_draining where w.id = of_id;
    unlisted := not found;
  else
    insert into outbox.worker as w (id, name, host, pid, version, subscriptions, kinds, draining, started_at,
                                    heartbeat_at)
    values (of_id, of_name, of_host, of_pid, of_version, subs, of_kinds, is_draining, now, now)
    on conflict (id) do update set heartbeat_at = now, draining = is_draining, subscriptions = subs, kinds = of_kinds,
      listed_in = pg_current_xact_id();
  end if;
  -- One statement, so one snapshot for all that is returned, and for what comes after it.
  return query
    select pg_current_snapshot()::text, beat.unlisted,
           (select jsonb_agg(jsonb_build_object('id', w.id, 'draining', w.draining, 'subscriptions',
                     case when since is null or not pg_visible_in_snapshot(w.listed_in, since)
                          then w.subscriptions end))
              from outbox.worker w
             where w.id <> of_id and w.heartbeat_at > now - alive_ms * interval '1 millisecond'),
           (select jsonb_agg(jsonb_build_object('name', s.name, 'revision', s.revision, 'mode', s.mode,
                     'held', s.held_cause is not null, 'lanes', s.lanes, 'kind', s.kind,
                     'probe_ms', case when not outbox.is_over(s.probe_at, now)
                       then extract(epoch from s.probe_at - now) * 1000 else 0 end::bigint,
                     'replay', (select jsonb_build_object('journey', j.id::text, 'plan', j.plan)
                                  from outbox.journey j where j.id = outbox.replay_of(s.name))))
              from (select a.name from outbox.subscription a where since is null
                    union
                    select c.name from outbox.subscription c
                     where c.changed_in >= pg_snapshot_xmin(since) and not pg_visible_in_snapshot(c.changed_in, since)
                    union
                    -- When the next probe is due is said anew: this clock may have been moved since.
                    select h.name from outbox.subscription h where h.held_cause is not null
                    union
                    select unnest(asked)
                    union
                    select j.subject from outbox.journey j where j.ended_at is null and j.kind = 'replay') n
              join outbox.subscription s on s.name = n.name),
           (select array_agg(r.subscription) from outbox.removed r
             where r.changed_in >= pg_snapshot_xmin(since) and not pg_visible_in_snapshot(r.changed_in, since)
               and not exists (select from outbox.subscription s where s.name = r.subscription));
end $$;

-- Somebody serves these: retention and doctor ask for the last time.
create or replace function outbox.served(of_id text) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  update outbox.subscription s set served_at = outbox.clock()
    -- One that somebody changes at the moment is noted next time.
    from (select x.name from outbox.worker w cross join lateral unnest(w.subscriptions) n(name)
            join outbox.subscription x on x.name = n.name
           where w.id = of_id and x.served_at < outbox.clock() - interval '30 seconds'
             for update of x skip locked) f
   where s.name = f.name
$$;

create or replace function outbox.leave(of_id text) returns void
language sql
begin atomic
  delete from outbox.worker w where w.id = of_id or w.heartbeat_at < outbox.clock() - interval '1 day';
end;
