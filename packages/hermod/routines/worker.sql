-- Workers: one heartbeat row each, and what they need to know of their subscriptions in the same round trip.

create or replace function outbox.heartbeat(
  of_id text, of_name text, of_host text, of_pid integer, of_version text, subs text[], is_draining boolean,
  alive_ms integer)
returns table (
  name text, revision integer, mode text, held_cause text, probe_ms bigint, lanes smallint, workers integer,
  others boolean, replay jsonb)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  insert into outbox.worker as w (id, name, host, pid, version, subscriptions, draining, started_at, heartbeat_at)
  values (of_id, of_name, of_host, of_pid, of_version, subs, is_draining, now, now)
  on conflict (id) do update set heartbeat_at = now, draining = is_draining, subscriptions = subs;
  update outbox.subscription s set served_at = now where s.name = any (subs)
    and s.served_at < now - interval '1 minute';
  return query
    select s.name, s.revision, s.mode, s.held_cause,
           greatest(0, extract(epoch from s.probe_at - now) * 1000)::bigint, s.lanes,
           (select count(*)::integer from outbox.worker w
             where s.name = any (w.subscriptions) and not w.draining
               and w.heartbeat_at > now - alive_ms * interval '1 millisecond'),
           exists (select from outbox.worker w where w.id <> of_id
                   and w.heartbeat_at > now - alive_ms * interval '1 millisecond'),
           (select jsonb_build_object('journey', j.id::text, 'plan', j.plan) from outbox.journey j
            where j.id = outbox.replay_of(s.name))
      from outbox.subscription s where s.name = any (subs);
end $$;

create or replace function outbox.leave(of_id text) returns void
language sql
begin atomic
  delete from outbox.worker w where w.id = of_id or w.heartbeat_at < outbox.clock() - interval '1 day';
end;
