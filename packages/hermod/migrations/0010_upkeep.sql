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
  if of_parent = 'log' then
    select s.at into began from outbox.step s where s.pos >= leaf.from_value order by s.id limit 1;
  else
    execute format('select t.%I from outbox.%I t order by t.id limit 1', case of_parent when 'event' then 'created_at' else 'started_at' end, leaf.name) into began;
  end if;
  return case when began < outbox.clock() - interval '1 hour' then (last - leaf.from_value) / extract(epoch from outbox.clock() - began) end;
end $$;

-- So many rows that fewer than 32 leaves are alive: each costs a step one index probe. 24 for the time, a few around them.
create function outbox.leaf_rows(of_parent text, days numeric, last bigint) returns bigint
language sql as $$
  select coalesce(greatest(100000, ceil(outbox.rate(of_parent, last) * days * 86400 / 24 / 100000) * 100000), 1000000)::bigint
$$;

-- Adds one leaf if fewer than two are free. 'again': call again; 'busy': somebody is in the way; null: nothing to do.
-- A default leaf that holds much would be scanned while nobody can insert, so there it goes in three short transactions:
-- a constraint that keeps the range out of the default leaf, its validation (which blocks nobody), the new leaf.
create function outbox.add_ahead(of_parent text, days numeric) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  spare text := of_parent || '_default';
  last  bigint := outbox.last_value(of_parent);
  size  bigint := outbox.leaf_rows(of_parent, days, last);
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
  if of_parent <> 'log' then
    select c.conname as name, c.convalidated as valid, r[1]::bigint as from_value, r[2]::bigint as to_value into wall
      from pg_constraint c cross join lateral regexp_match(c.conname, '_wall_(\d+)_(\d+)$') r
     where c.conrelid = format('outbox.%I', spare)::regclass and c.conname like '%\_wall\_%';
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
  -- Above the sequence, with room for what is emitted meanwhile.
  start := case when ends > greatest(last, top) then ends else greatest(last, top) + size / 10 end;
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

-- Positions up to here were given before `days` ago.
create function outbox.old_pos(days numeric) returns bigint
language sql as $$ select s.pos from outbox.step s where s.at <= outbox.clock() - days * interval '1 day' order by s.at desc, s.id desc limit 1 $$;

-- Why a log leaf must stay; null: it may go. A quiet cursor behind it does not hold it, only unread rows of its own lane do.
create function outbox.log_holder(of_name text, from_value bigint, to_value bigint, days numeric) returns text
language plpgsql as $$
declare
  found text;
begin
  if outbox.last_value('log') < to_value - 1 then
    return 'in use';
  elsif coalesce(outbox.old_pos(days), 0) < to_value - 1 then
    return 'young';
  end if;
  select 'kept for ' || k.holder into found from outbox.keep k where k.pos < to_value - 1 order by k.pos limit 1;
  if found is not null then
    return found;
  end if;
  execute format($q$
    select 'unread by ' || s.name from outbox.subscription s
      join outbox.lane l on l.subscription = s.name
     cross join lateral outbox.cursor_of(s.name, l.lane) c
     where exists (select from outbox.setting t cross join generate_series(0, t.lanes - 1) i
                    cross join lateral (select from outbox.%1$I g where g.lane = i and g.pos > c.pos limit 1) n
                    where s.lanes = 1 or i = l.lane)
     limit 1 $q$, of_name) into found;
  if found is not null then
    return found;
  end if;
  -- Followers of an aggregate that waits have no rows of their own: only the log knows them.
  execute format($q$
    select 'followers wait behind a failed event of ' || s.name from outbox.delivery d
      join outbox.subscription s on s.name = d.subscription
      join outbox.%1$I g on g.hash = d.hash and g.pos > d.pos
     where d.pos < $1 and s.ordered and not s.ledger and (d.state = 'retrying' or d.state = 'dead' and s.dead_holds)
       and g.pos <= (select c.pos from outbox.cursor_of(s.name, d.lane) c)
     limit 1 $q$, of_name) into found using to_value;
  return found;
end $$;

-- Does the leaf hold an event that was not committed in this snapshot? Rows that a rebase numbered do not count.
create function outbox.has_unseen(of_name text, seen pg_snapshot) returns boolean
language plpgsql as $$
declare
  found boolean;
begin
  execute format('select exists (select from outbox.%I e where ($1 is null or e.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(e.xid, $1))
    and e.id > (select t.fenced_id from outbox.setting t))', of_name) into found using seen;
  return found;
end $$;

create function outbox.lacks_copy(from_value bigint, to_value bigint) returns boolean
language sql as $$
  select exists (select from outbox.delivery d where d.event_id >= from_value and d.event_id < to_value
                    and d.event is null and d.state not in ('delivered', 'discarded'))
$$;

-- Why an event leaf must stay; null: it may go. In this order: an event goes from unnumbered to scheduled to the log.
create function outbox.event_holder(of_name text, from_value bigint, to_value bigint, seen pg_snapshot) returns text
language plpgsql as $$
begin
  if outbox.last_value('event') < to_value - 1 then
    return 'in use';
  elsif outbox.has_unseen(of_name, seen) then
    return 'not numbered yet';
  elsif exists (select from outbox.scheduled s where s.event_id >= from_value and s.event_id < to_value) then
    return 'scheduled';
  elsif exists (select from outbox.log g where g.event_id >= from_value and g.event_id < to_value) then
    return 'in the log';
  end if;
  return case when outbox.lacks_copy(from_value, to_value) then 'open deliveries without a copy' end;
end $$;

-- Rows never hold a leaf: what is open keeps the event itself. Returns how many were copied.
create function outbox.copy_open(from_value bigint, to_value bigint, rows_max integer) returns integer
language plpgsql as $$
declare
  copied integer;
begin
  update outbox.delivery d set event = json_build_object('version', e.version, 'created_at', e.created_at, 'type', e.type,
           'key', e.key, 'headers', e.headers, 'payload', e.payload)
    from outbox.event e
   where e.id = d.event_id and d.event is null and (d.subscription, d.lane, d.pos) in (
     select o.subscription, o.lane, o.pos from outbox.delivery o where o.event_id >= from_value and o.event_id < to_value
        and o.event is null and o.state not in ('delivered', 'discarded') limit rows_max);
  get diagnostics copied = row_count;
  return copied;
end $$;
