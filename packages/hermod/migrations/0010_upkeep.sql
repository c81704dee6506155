-- upkeep: partitions ahead of need, retention behind it. Whoever gets a try-lock does a piece; everything waits at most
-- 50 ms for a table lock (whoever queues up behind such a wait then stays below 100 ms) and is tried again next time.
--
--   log leaf:    in use → closed → old and read by all → (archived) → emptied (TRUNCATE) → dropped, next time
--   event leaf:  in use → closed → all numbered, no position left → open deliveries copied → emptied → dropped, next time

create table outbox.upkeep (piece text primary key, at timestamptz not null);

-- What upkeep remembers of a leaf.
create table outbox.leaf (
  name          text primary key,
  frozen_at     timestamptz,
  archived_as   text,
  archived_rows bigint,
  emptied_at    timestamptz
);

-- What journeys (replay, rebuild, a kept generation) still need: every position above `pos`.
create table outbox.keep (holder text primary key, pos bigint not null, since timestamptz not null default outbox.clock());

-- Is it this caller's turn? At most one turn per piece and interval, over all workers.
create function outbox.upkeep_turn(of_piece text, every_ms integer) returns boolean
language plpgsql as $$
declare
  now timestamptz := outbox.clock();
begin
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('upkeep', of_piece)) then
    return false;
  end if;
  insert into outbox.upkeep as u (piece, at) values (of_piece, now)
  on conflict (piece) do update set at = now where u.at <= now - every_ms * interval '1 millisecond' or u.at > now;
  return found;
end $$;

create function outbox.lock_leaf(of_name text) returns boolean
language sql as $$ select pg_try_advisory_xact_lock(1212370247, outbox.hash('leaf', of_name)) $$;

-- Does a transaction hold any lock on these tables for longer than a moment? Then waiting would only make others queue up.
create function outbox.long_held(rels oid[]) returns boolean
language plpgsql as $$
declare
  first text[];
begin
  for i in 1 .. 2 loop
    if i = 2 then
      perform pg_sleep(0.02);
    end if;
    first := array(select distinct l.virtualtransaction from pg_locks l
      where l.relation = any (rels) and l.granted and l.pid is distinct from pg_backend_pid()
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and (i = 1 or l.virtualtransaction = any (first)));
    if first = '{}' then
      return false;
    end if;
  end loop;
  return true;
end $$;

-- The highest number handed out by the sequence behind a parent; of the log, its head.
create function outbox.last_value(parent text) returns bigint
language sql volatile as $$
  select case parent
    when 'event' then (select case when s.is_called then s.last_value else s.last_value - 1 end from outbox.event_id s)
    when 'attempt' then (select case when s.is_called then s.last_value else s.last_value - 1 end from outbox.attempt_id s)
    else coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0) end
$$;

-- Rows a second, measured on the leaf in use; null while that says little (under an hour, under 1,000 rows).
create function outbox.rate(of_parent text, last bigint) returns numeric
language plpgsql as $$
declare
  leaf  record;
  began timestamptz;
begin
  select p.name, p.from_value into leaf from outbox.partition p where p.parent = of_parent and p.from_value <= last and p.to_value > last;
  if leaf.name is null or last - leaf.from_value < 1000 then
    return null;
  end if;
  execute format('select t.%I from outbox.%I t order by t.id limit 1', case of_parent when 'event' then 'created_at' else 'started_at' end, leaf.name) into began;
  return case when began < outbox.clock() - interval '1 hour' then (last - leaf.from_value) / extract(epoch from outbox.clock() - began) end;
end $$;

-- So many rows that fewer than 32 leaves are alive: each costs a step one index probe. 24 for the time, a few around them.
-- The log grows as fast as the events.
create function outbox.leaf_rows(of_parent text, days numeric) returns bigint
language sql as $$
  select greatest(100000, coalesce(ceil(outbox.rate(p.counts, outbox.last_value(p.counts)) * days * 86400 / 24 / 100000) * 100000, 1000000))::bigint
    from (select case of_parent when 'log' then 'event' else of_parent end) as p(counts)
$$;

-- Adds one leaf if fewer than two are free. 'again': call again; 'busy': somebody is in the way; null: nothing to do.
-- A default leaf that holds much would be scanned while nobody can insert, so there it goes in three short transactions:
-- a constraint that keeps the range out of the default leaf, its validation (which blocks nobody), the new leaf.
create function outbox.add_ahead(of_parent text, days numeric) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  spare text := of_parent || '_default';
  last  bigint := outbox.last_value(of_parent);
  size  bigint := outbox.leaf_rows(of_parent, days);
  ends  bigint;
  top   bigint;
  start bigint;
  wall  record;
begin
  -- The log's other writer of leaves is a step: taking its lock keeps the two apart.
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('partition', of_parent))
     or of_parent = 'log' and not pg_try_advisory_xact_lock(4841297201) then
    return 'busy';
  end if;
  select coalesce(max(p.to_value), 1) into ends from outbox.partition p where p.parent = of_parent;
  select c.conname as name, c.convalidated as valid, r[1]::bigint as from_value, r[2]::bigint as to_value into wall
    from pg_constraint c cross join lateral regexp_match(c.conname, '_wall_(\d+)_(\d+)$') r
   where c.conrelid = to_regclass(format('outbox.%I', spare)) and c.conname like '%\_wall\_%';
  if of_parent <> 'log' then
    execute format('select max(t.id) from outbox.%I t', spare) into top;
  end if;
  if wall.name is not null and (ends > wall.from_value or last + size / 100 >= wall.from_value) then
    execute format('alter table outbox.%I drop constraint %I', spare, wall.name);
    return 'again';
  elsif wall.name is not null and not wall.valid then
    execute format('alter table outbox.%I validate constraint %I', spare, wall.name);
    return 'again';
  elsif wall.name is not null then
    perform outbox.add_partition(of_parent, wall.from_value, wall.to_value);
    execute format('alter table outbox.%I drop constraint %I', spare, wall.name);
    return format('%s_%s', of_parent, lpad(wall.from_value::text, 19, '0'));
  elsif ends - last > 2 * size then
    return null;
  end if;
  -- Above the sequence, with room for what is emitted meanwhile: an insert on its way into the default leaf would fail
  -- when the new leaf takes its range.
  start := case when ends - greatest(last, top) > size / 100 then ends else greatest(ends, last, top) + size / 10 end;
  if top is not null and pg_relation_size(format('outbox.%I', spare)::regclass) > 32 * 1024 * 1024 then
    start := greatest(start, last + size / 10);
    execute format('alter table outbox.%I add constraint %I check (id < %s or id >= %s) not valid', spare,
      format('%s_wall_%s_%s', of_parent, start, start + size), start, start + size);
    return 'again';
  end if;
  return outbox.add_partition(of_parent, start, start + size);
exception when lock_not_available or check_violation then
  return 'busy';
end $$;

-- Events that had to land in the default leaf, counted up to 10,001.
create function outbox.strays(out rows integer, out top bigint)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer, max(t.id) from (select e.id from outbox.event_default e order by e.id desc limit 10001) t
$$;

-- A configured policy is a decision too: one row, with a request id of its own.
create function outbox.audit_policy(of_action text, of_subscription text, what text, rows bigint) returns void
language sql as $$
  insert into outbox.audit (request_id, actor, action, subscription, reason, count)
  values ('retention:' || gen_random_uuid(), 'policy', of_action, of_subscription, what, rows)
$$;

-- Dead letters, receipts and what was given up, lane by lane under its lock. Followers held behind a dead letter are
-- released before it goes: nothing undelivered is lost with it.
create function outbox.prune_deliveries(days numeric, rows_max integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  cutoff timestamptz := outbox.clock() - days * interval '1 day';
  at     record;
  d      outbox.delivery;
  total  bigint := 0;
  n      bigint;
begin
  for at in
    select s.name, s.ordered and s.dead_holds and not s.coalesced and not s.ledger as holds, w.state, l.lane
      from outbox.subscription s join outbox.lane l on l.subscription = s.name
     cross join unnest(array['dead', 'unknown', 'delivered', 'discarded']) as w(state)
     where exists (select from outbox.delivery x where x.subscription = s.name and x.state = w.state and x.updated_at < cutoff and x.lane = l.lane)
     order by s.name, l.lane
  loop
    exit when total >= rows_max;
    perform from outbox.lane l where l.subscription = at.name and l.lane = at.lane for update skip locked;
    continue when not found;
    n := 0;
    for d in select * from outbox.delivery x where x.subscription = at.name and x.state = at.state and x.lane = at.lane
                and x.updated_at < cutoff order by x.pos limit rows_max - total loop
      if at.holds and at.state = 'dead' then
        perform outbox.walk_on(d, (select c.pos from outbox.cursor_of(at.name, at.lane) c), false);
      else
        delete from outbox.delivery x where x.subscription = d.subscription and x.lane = d.lane and x.pos = d.pos;
      end if;
      n := n + 1;
    end loop;
    total := total + n;
    if n > 0 then
      perform outbox.audit_policy('retention.delivery', at.name, format('%s in lane %s', at.state, at.lane), n);
    end if;
  end loop;
  return total;
end $$;

-- Small leftovers, a bounded number of each; the caller comes back while there are more.
create function outbox.prune(event_days numeric, delivery_days numeric, key_days numeric, rows_max integer)
returns table (what text, rows bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('upkeep', 'pruning')) then
    return;
  end if;
  return query select 'deliveries', outbox.prune_deliveries(delivery_days, rows_max);
  with old as (select i.key from outbox.idempotency i where i.created_at < now - key_days * interval '1 day' limit rows_max for update skip locked),
       gone as (delete from outbox.idempotency i using old where i.key = old.key returning 1)
  select 'keys', count(*) into what, rows from gone; return next;
  with old as (select i.consumer, i.message_id from outbox.inbox i where i.at < now - delivery_days * interval '1 day' limit rows_max for update skip locked),
       gone as (delete from outbox.inbox i using old where i.consumer = old.consumer and i.message_id = old.message_id returning 1)
  select 'inbox', count(*) into what, rows from gone; return next;
  -- Of the old steps the newest stays: it says which positions are old, also after a silence, and may be the newest of all.
  with gone as (delete from outbox.step s where s.id in (
         select o.id from outbox.step o where o.at < now - (event_days + 1) * interval '1 day'
            and o.id < (select m.id from outbox.step m where m.at < now - (event_days + 1) * interval '1 day' order by m.at desc, m.id desc limit 1)
          order by o.at limit rows_max) returning 1)
  select 'steps', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.cursor c using outbox.lane l cross join lateral outbox.cursor_of(l.subscription, l.lane) n
         where c.subscription = l.subscription and c.lane = l.lane and (c.fence, c.pos) < (n.fence, n.pos) returning 1)
  select 'cursors', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.shadow c using outbox.lane l cross join lateral outbox.shadow_of(l.subscription, l.lane) n
         where c.subscription = l.subscription and c.lane = l.lane and (c.fence, c.pos) < (n.fence, n.pos) returning 1)
  select 'shadows', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.worker w where w.heartbeat_at < now - interval '1 day' returning 1)
  select 'workers', count(*) into what, rows from gone; return next;
end $$;

revoke execute on function outbox.add_ahead, outbox.strays, outbox.prune_deliveries, outbox.prune from public;
