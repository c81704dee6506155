-- Ledger sinks: every event has a row.

-- The rows of events that are to be sent. `again`: those that have a row already become pending once more.
create or replace function outbox.enlist_rows(
  sub text, of_lane smallint, positions bigint[], ids bigint[], hashes integer[], types text[], aggregates text[],
  attempts_max integer, again boolean)
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into outbox.delivery as d (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state,
                                    attempts_max, next_attempt_at, updated_at)
  select sub, of_lane, w.pos, w.id, w.type, w.aggregate, w.hash, 'pending', enlist_rows.attempts_max, outbox.clock(),
         outbox.clock()
    from unnest(positions, ids, hashes, types, aggregates) as w(pos, id, hash, type, aggregate)
  on conflict on constraint delivery_pkey do update set state = 'pending', attempts = 0,
    next_attempt_at = excluded.next_attempt_at, updated_at = excluded.updated_at
   where again and d.state in ('delivered', 'dead', 'unknown');
end $$;

-- Writes one row per event and moves the cursor, in one transaction; from then on the rows say what to send. Reads to
-- the end of the log, not to the head of a step: the rows of the log and their step commit together.
create or replace function outbox.enlist(
  sub text, rev integer, who text, lanes smallint[], fences bigint[], count_max integer, scan_max integer,
  attempts_max integer)
returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s         outbox.subscription;
  at        record;
  positions bigint[];
  ids       bigint[];
  hashes    integer[];
  types     text[];
  names     text[];
  last      bigint;
begin
  perform from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  select * into s from outbox.subscription where name = sub;
  if s.revision > rev or s.mode <> 'live' or s.held_cause is not null then
    return;
  end if;
  for at in
    select l.lane, l.fence, c.fence as cursor_fence, c.pos, c.delivered, f.types, f.aggregates,
           (select min(x.from_pos) from outbox.filter x where x.subscription = sub and x.from_pos > c.pos) as until
      from outbox.lane l
      join unnest(lanes, fences) as w(lane, fence) on w.lane = l.lane and w.fence = l.fence
     cross join lateral outbox.cursor_of(sub, l.lane) c
     cross join lateral (select * from outbox.filter x where x.subscription = sub and x.from_pos <= c.pos
                         order by x.from_pos desc limit 1) f
     where l.subscription = sub and l.owner = who
  loop
    with scanned as materialized (
      select * from outbox.scan(s.lanes = 1, at.lane, at.pos, coalesce(at.until, 9223372036854775806), scan_max)
    ), hit as materialized (
      -- An event that is gone gets a row too: its kind says what it was, and it becomes a dead letter.
      select g.pos, g.event_id, g.hash, coalesce(e.aggregate_type, k.aggregate_type) as aggregate_type,
             coalesce(e.aggregate_id, '') as aggregate_id
        from scanned g left join outbox.event e on e.id = g.event_id
        left join lateral (select n.type, n.aggregate_type from outbox.kind n
                            where e.id is null and n.code = g.kind and n.code > 0) k on true
       where outbox.matches(at.types, coalesce(e.type, k.type))
         and (at.aggregates is null or coalesce(e.aggregate_type, k.aggregate_type) = any (at.aggregates))
       order by g.pos limit count_max
    )
    select array_agg(h.pos), array_agg(h.event_id), array_agg(h.hash), array_agg(h.aggregate_type),
           array_agg(h.aggregate_id),
           case when count(*) = count_max then max(h.pos)
                else coalesce((select max(g.pos) from scanned g), at.until) end
      into positions, ids, hashes, types, names, last from hit h;
    perform outbox.enlist_rows(sub, at.lane, positions, ids, hashes, types, names, attempts_max, false);
    if last > at.pos then
      insert into outbox.cursor (subscription, lane, fence, pos, delivered)
        values (sub, at.lane, at.fence, last, at.delivered);
      delete from outbox.cursor c where c.subscription = sub and c.lane = at.lane and c.fence = at.cursor_fence
        and c.pos = at.pos;
    end if;
  end loop;
end $$;

-- Recorded right before the effect, under the lane's fence. False: the lease is lost. Null: an operator has decided
-- about this message. In both cases nothing may be sent.
create or replace function outbox.sending(
  sub text, who text, of_lane smallint, of_fence bigint, of_pos bigint, note json) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
begin
  perform from outbox.lane l where l.subscription = sub and l.lane = of_lane and l.owner = who and l.fence = of_fence
    for update;
  if not found then
    return false;
  end if;
  update outbox.delivery d set state = 'sending', fence = of_fence, attempts = d.attempts + 1, next_attempt_at = null,
         updated_at = outbox.clock(), receipt = coalesce(note, d.receipt)
   where d.subscription = sub and d.lane = of_lane and d.pos = of_pos and d.state in ('pending', 'retrying');
  return case when found then true end;
end $$;
