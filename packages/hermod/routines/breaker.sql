-- The circuit breaker of a subscription: shared by all workers, one probe at a time.

-- The breaker: nothing is sent until `probe_at`; then one worker at a time may try.
--   closed ──hold──▶ held ──probe (one wins)──▶ trying ──recover──▶ closed
--                     ▲                            │
--                     └───────────hold─────────────┘
create or replace function outbox.hold(sub text, cause text, says text, after_ms integer, cap_ms integer, who text)
returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  now timestamptz := outbox.clock();
begin
  -- Only the first failure and a failed probe count: loops that fail at the same time do not add up, and a late
  -- failure does not end a probe under way.
  update outbox.subscription s
     set held_since = coalesce(s.held_since, now), held_cause = cause, held_says = left(says, 1000),
         held_count = s.held_count + 1, probe_owner = null, probe_at = now
           + greatest(after_ms, least(cap_ms, 250 * 2 ^ least(s.held_count, 12))::integer) * interval '1 millisecond'
   where s.name = sub and (s.held_cause is null or s.probe_owner = who);
  if not found and after_ms > 0 then
    update outbox.subscription s set probe_at = greatest(s.probe_at, now + after_ms * interval '1 millisecond')
     where s.name = sub and s.held_cause is not null;
  end if;
end $$;

-- May this worker probe now? The right to probe expires by itself if its worker vanishes.
create or replace function outbox.probe(sub text, who text, call_ms integer) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  now timestamptz := outbox.clock();
begin
  update outbox.subscription s set probe_owner = who, probe_at = now + call_ms * interval '1 millisecond'
   where s.name = sub and s.held_cause is not null and outbox.is_over(s.probe_at, now);
  return found;
end $$;

-- Gives the right to probe back unused.
create or replace function outbox.unprobe(sub text, who text) returns void
language sql set lock_timeout = '500ms'
begin atomic
  update outbox.subscription s set probe_owner = null, probe_at = outbox.clock()
   where s.name = sub and s.probe_owner = who;
end;

create or replace function outbox.recover(sub text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
begin
  update outbox.subscription s set held_cause = null, held_since = null, held_says = null, held_count = 0,
         probe_at = null, probe_owner = null
   where s.name = sub and s.held_cause is not null;
  return found;
end $$;
