-- upkeep: adds partitions ahead of need and removes old ones. The worker that gets a try-lock does a piece. Everything
-- waits at most 50 ms for a table lock, so that others queue for less than 100 ms, and is tried again next time.
--
--   log leaf:    in use → closed → old and read by all → (archived) → emptied (TRUNCATE) → dropped, next time
--   event leaf:  in use → closed → all numbered, no position left → open deliveries copied → emptied → dropped, next
--                time
--
-- A leaf that does not fill, or is held for long, loses its old rows instead: trim.sql.

-- Is it this caller's turn? At most one turn per piece and interval, over all workers.
create or replace function outbox.upkeep_turn(of_piece text, every_ms integer) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

create or replace function outbox.lock_leaf(of_name text) returns boolean
language sql
begin atomic
  select pg_try_advisory_xact_lock(1212370247, outbox.hash('leaf', of_name));
end;

-- Does a transaction hold any lock on these tables for longer than a moment? Then waiting would only make others queue
-- up. Where looking at locks is refused, `lock_timeout` alone keeps the wait short.
create or replace function outbox.long_held(rels oid[]) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
exception when insufficient_privilege then
  return false;
end $$;

-- The highest number given out by the sequence behind a parent; for the log, its head.
create or replace function outbox.last_value(parent text) returns bigint
language sql volatile
begin atomic
  select case parent
    when 'event' then outbox.last_id()
    when 'attempt' then coalesce(pg_sequence_last_value('outbox.attempt_id'), 0)
    else coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0) end;
end;

-- Rows per second, measured on the leaf in use; null if there is too little to measure (one hour, 1,000 rows).
create or replace function outbox.rate(of_parent text, last bigint) returns numeric
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  leaf  record;
  began timestamptz;
begin
  select p.name, p.from_value into leaf from outbox.partition p
    where p.parent = of_parent and p.from_value <= last and p.to_value > last;
  if leaf.name is null or last - leaf.from_value < 1000 then
    return null;
  end if;
  execute format('select t.%I from outbox.%I t order by t.id limit 1', case of_parent when 'event' then 'created_at'
                 else 'started_at' end, leaf.name) into began;
  return case when began < outbox.clock() - interval '1 hour'
    then (last - leaf.from_value) / extract(epoch from outbox.clock() - began) end;
end $$;

-- Rows per leaf, so that fewer than 32 leaves exist: each costs a step one index probe. 24 for the retention time, a
-- few before and after. The log grows as fast as the events.
create or replace function outbox.leaf_rows(of_parent text, days numeric) returns bigint
language sql
begin atomic
  select greatest(100000,
                  coalesce(ceil(outbox.rate(p.counts,
                                            outbox.last_value(p.counts)) * days * 86400 / 24 / 100000) * 100000,
                                              1000000))::bigint
    from (select case of_parent when 'log' then 'event' else of_parent end) as p(counts);
end;

-- Adds one leaf if fewer than two are free. 'again': call again; 'busy': a lock was not free; null: nothing to do.
-- A default leaf with many rows would be scanned while nobody can insert. Then it takes three short transactions: a
-- constraint that keeps the range out of the default leaf, its validation (which blocks nobody), the new leaf.
create or replace function outbox.add_ahead(of_parent text, days numeric) returns text
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
  -- Steps add leaves of the log too: taking their lock keeps the two apart.
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('partition', of_parent))
     or of_parent = 'log' and not pg_try_advisory_xact_lock(4841297201) then
    return 'busy';
  end if;
  select coalesce(max(p.to_value), 1) into ends from outbox.partition p where p.parent = of_parent;
  select c.conname as name, c.convalidated as valid, r[1]::bigint as from_value, r[2]::bigint as to_value into wall
    from pg_constraint c cross join lateral regexp_match(c.conname, '_wall_([0-9]+)_([0-9]+)$') r
   where c.conrelid = to_regclass(format('outbox.%I', spare)) and c.conname ~ '_wall_[0-9]';
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
  -- Above the sequence, with room for what is emitted meanwhile: an insert under way into the default leaf would fail
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
create or replace function outbox.strays(out rows integer, out top bigint)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer, max(t.id) from (select e.id from outbox.event_default e order by e.id desc limit 10001) t
$$;
