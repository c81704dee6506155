-- Journeys: long work that survives its process. A row says what was asked and how far it is; a runner takes it under a
-- lease by the database's clock. When a lease has ended, another runner continues where the row says.
--
--            take                    finish
--   queued ────────▶ running ──────────────────▶ succeeded, failed, cancelled
--    │  ▲             │    ▲ lease ended: taken again
--    │  └─resume─┐    │ asked to pause
--    └──pause──▶ paused ◀┘

-- Takes the next journey of these kinds (of any subject if it is null), or this one. An idle call writes nothing.
create or replace function outbox.take_journey(who text, kinds text[], subjects text[], of_id bigint, lease_ms integer)
returns setof outbox.journey
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now   timestamptz := outbox.clock();
  found bigint;
begin
  select j.id into found from outbox.journey j
   where j.ended_at is null and (of_id is null or j.id = of_id)
     and (j.state = 'queued' or j.state = 'running' and j.owner_until <= now)
     and exists (select from unnest(take_journey.kinds, take_journey.subjects) as h(kind, subject)
                  where h.kind = j.kind and (h.subject is null or h.subject = j.subject))
     and not exists (select from outbox.journey o where o.id <> j.id and o.ended_at is null and o.started_at is not null
                     and j.kind <> 'verify'
                        and o.subject = j.subject and replace(o.kind, 'backfill', 'rebuild') = replace(j.kind,
                              'backfill', 'rebuild'))
   order by j.id limit 1 for update skip locked;
  if found is null then
    return;
  end if;
  return query
    update outbox.journey j set state = 'running', owner = who, owner_until = now + lease_ms * interval '1 millisecond',
           started_at = coalesce(j.started_at, now), updated_at = now
     where j.id = found returning j.*;
exception when unique_violation then
  return;   -- another one of this subject has just begun
end $$;

-- Renews the lease, adds to the progress, and returns what the operator wants; null: another runner has it.
create or replace function outbox.keep_journey(of_id bigint, who text, lease_ms integer, of_phase text, more jsonb)
returns text
language sql
begin atomic
  update outbox.journey j set owner_until = outbox.clock() + lease_ms * interval '1 millisecond',
    updated_at = outbox.clock(),
         phase = coalesce(of_phase, j.phase), progress = j.progress || coalesce(more, '{}')
   where j.id = of_id and j.owner = who returning j.asked;
end;

-- The owner gives it back: `queued` again, `paused`, or ended. False: another runner has it by now.
create or replace function outbox.end_journey(of_id bigint, who text, to_state text, of_result jsonb, says text)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  update outbox.journey j set state = to_state, owner = null, owner_until = null, updated_at = now,
    error = left(says, 2000),
         result = coalesce(of_result, j.result), ended_at = case
           when to_state in ('succeeded', 'failed', 'cancelled') then now end,
         asked = case when to_state = 'queued' then j.asked else 'run' end
   where j.id = of_id and j.owner = who;
  if not found then
    return false;
  end if;
  perform outbox.unkeep(of_id);
  return true;
end $$;

-- Retention may remove what an ended journey needed (`keep`, under its kind and number).
create or replace function outbox.unkeep(of_id bigint) returns void
language sql
begin atomic
  delete from outbox.keep k using outbox.journey j where j.id = of_id and j.ended_at is not null
    and k.holder = j.kind || ' ' || j.id;
end;

-- What an operator wants of a journey; the caller has locked and read its row. Without an owner it happens at once,
-- except a cancel of a journey that was begun: a runner takes it to clean up.
create or replace function outbox.ask_journey(of_id bigint, want text) returns outbox.journey
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  now   timestamptz := outbox.clock();
  j     outbox.journey;
  alone boolean;
begin
  select * into j from outbox.journey o where o.id = of_id;
  alone := j.owner is null or j.owner_until <= now;
  update outbox.journey o set updated_at = now,
         asked = case when want = 'pause' and alone then 'run' else want end,
         state = case when want = 'run' and o.state in ('paused', 'failed') then 'queued'
                      when want = 'pause' and alone then 'paused'
                      when want = 'cancel' and o.started_at is null then 'cancelled'
                      when want = 'cancel' and alone then 'queued' else o.state end,
         owner = case when alone then null else o.owner end,
         owner_until = case when alone then null else o.owner_until end,
         error = case when want = 'run' then null else o.error end,
         ended_at = case when want = 'cancel' and o.started_at is null then now when want = 'run' then null
           else o.ended_at end
   where o.id = of_id returning * into j;
  perform outbox.unkeep(of_id);
  return j;
end $$;
