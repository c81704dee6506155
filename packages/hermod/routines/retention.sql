-- retention: what is old and needed by nobody goes, leaf by leaf, each time with one row in `audit`.

-- Positions up to here were given before `days` ago.
create or replace function outbox.old_pos(days numeric) returns bigint
language sql
begin atomic
  select s.pos from outbox.step s where s.at <= outbox.clock() - days * interval '1 day' order by s.at desc, s.id desc
    limit 1;
end;

-- Why a log leaf must stay; null: it may go. A quiet cursor behind it does not hold it, only unread rows of its own
-- lane do.
create or replace function outbox.log_holder(of_name text, to_value bigint, days numeric) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if outbox.last_value('log') < to_value - 1 then
    return 'in use';
  elsif coalesce(outbox.old_pos(days), 0) < to_value - 1 then
    return 'young';
  end if;
  return coalesce(outbox.log_reader(of_name, to_value), outbox.log_follower(of_name, to_value));
end $$;

create or replace function outbox.log_reader(of_name text, to_value bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found text;
begin
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
  return found;
end $$;

-- Followers of an aggregate that waits have no rows of their own: only the log knows them.
create or replace function outbox.log_follower(of_name text, to_value bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found text;
begin
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
create or replace function outbox.has_unseen(of_name text, seen pg_snapshot) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found boolean;
begin
  execute format($q$
    select exists (select from outbox.%I e
      where ($1 is null or e.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(e.xid, $1))
        and e.id > (select t.fenced_id from outbox.setting t)) $q$, of_name) into found using seen;
  return found;
end $$;

create or replace function outbox.lacks_copy(from_value bigint, to_value bigint) returns boolean
language sql
begin atomic
  select exists (select from outbox.delivery d where d.event_id >= from_value and d.event_id < to_value
                    and d.event is null and d.state not in ('delivered', 'discarded'));
end;

-- Why an event leaf must stay; null: it may go. In this order: an event goes from unnumbered to scheduled to the log.
create or replace function outbox.event_holder(of_name text, from_value bigint, to_value bigint, seen pg_snapshot)
returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- An event as a delivery keeps it. Written as text: what is null is left out, and the payload keeps its bytes.
create or replace function outbox.copy_of(e outbox.event) returns json
language sql stable
return ('{' || concat_ws(',', '"version":' || (e).version, '"created_at":' || to_json((e).created_at),
  '"type":' || to_json((e).type), '"key":' || to_json((e).key), '"headers":' || (e).headers,
  '"payload":' || (e).payload) || '}')::json;

-- Rows never hold a leaf: what is open keeps the event itself. Returns how many were copied.
create or replace function outbox.copy_open(from_value bigint, to_value bigint, rows_max integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  copied integer;
begin
  update outbox.delivery d set event = outbox.copy_of(e)
    from outbox.event e
   where e.id = d.event_id and d.event is null and (d.subscription, d.lane, d.pos) in (
     select o.subscription, o.lane, o.pos from outbox.delivery o
       where o.event_id >= from_value and o.event_id < to_value
        and o.event is null and o.state not in ('delivered', 'discarded') limit rows_max);
  get diagnostics copied = row_count;
  return copied;
end $$;

-- The range of ids in a leaf: its bounds, or what a default leaf holds now.
create or replace function outbox.leaf_range(of_parent text, of_name text, out from_value bigint, out to_value bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  select p.from_value, p.to_value into from_value, to_value from outbox.partition p
    where p.parent = of_parent and p.name = of_name;
  if from_value is null then
    execute format('select min(t.id), max(t.id) + 1 from outbox.%I t', of_name) into from_value, to_value;
  end if;
end $$;

-- Empties one leaf if nothing holds it. 'emptied', 'empty', 'busy', or why it stays. The conditions that a commit could
-- still change are checked again under the leaf's lock: a transaction older than the retention may have written into
-- it.
create or replace function outbox.empty_leaf(of_parent text, of_name text, days numeric) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  leaf   regclass := (select p.leaf from outbox.partition p where p.parent = of_parent and p.name = of_name);
  bounds record;
  seen   pg_snapshot;
  holder text;
  rows   bigint;
begin
  if not outbox.lock_leaf(of_name) then
    return 'busy';
  end if;
  select coalesce(s.previous, s.snapshot) into seen from outbox.step s order by s.id desc limit 1;
  select * into bounds from outbox.leaf_range(of_parent, of_name);
  if bounds.from_value is null then
    return 'empty';
  end if;
  holder := case of_parent
    when 'log' then outbox.log_holder(of_name, bounds.to_value, days)
    when 'event' then outbox.event_holder(of_name, bounds.from_value, bounds.to_value, seen)
    else outbox.attempt_holder(of_name, bounds.to_value, days) end;
  if holder is not null then
    return holder;
  end if;
  execute format('select count(*) from %s', leaf) into rows;
  if outbox.long_held(array[leaf]) then
    return 'busy';
  end if;
  -- A replay that is being created notes what it needs in a transaction that may not have committed yet.
  if of_parent = 'log' then
    lock table outbox.keep in share mode;
  end if;
  execute format('lock table only %s in access exclusive mode', leaf);
  holder := case of_parent
    when 'log' then outbox.log_reader(of_name, bounds.to_value)
    when 'event' then case when outbox.has_unseen(of_name, seen)
      or outbox.lacks_copy(bounds.from_value, bounds.to_value) then 'changed meanwhile' end
    else outbox.attempt_holder(of_name, bounds.to_value, days) end;
  if holder is not null then
    raise exception using errcode = 'lock_not_available'; -- gives the lock back
  end if;
  execute format('truncate only %s', leaf);
  insert into outbox.leaf as l (name, emptied_at) values (of_name, outbox.clock()) on conflict (name) do update
    set emptied_at = excluded.emptied_at;
  perform outbox.audit_policy('retention.' || of_parent, null, of_name, rows);
  return 'emptied';
exception when lock_not_available then
  return coalesce(holder, 'busy');
end $$;

create or replace function outbox.attempt_holder(of_name text, to_value bigint, days numeric) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  young boolean;
begin
  if outbox.last_value('attempt') < to_value - 1 then
    return 'in use';
  end if;
  execute format('select exists (select from outbox.%I a where a.started_at > $1)', of_name) into young
    using outbox.clock() - days * interval '1 day';
  return case when young then 'young' end;
end $$;

-- Drops a leaf that was emptied before and still is. The parent's lock is waited for shortly, the others not at all.
create or replace function outbox.drop_leaf(of_parent text, of_name text) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  leaf   regclass := (select p.leaf from outbox.partition p where p.parent = of_parent and p.name = of_name
                      and p.to_value is not null);
  spare  regclass := to_regclass(format('outbox.%I', of_parent || '_default'));
  filled boolean;
begin
  if leaf is null or not outbox.lock_leaf(of_name)
     or outbox.long_held(array[leaf, spare, format('outbox.%I', of_parent)::regclass]) then
    return 'busy';
  end if;
  execute format('lock table only outbox.%I in access exclusive mode', of_parent);
  execute format('lock table only %s in access exclusive mode nowait', leaf);
  if spare is not null then
    execute format('lock table only %s in access exclusive mode nowait', spare);
  end if;
  execute format('select exists (select from %s)', leaf) into filled;
  if filled then
    -- Written by a transaction that got its id long ago: an ordinary leaf again.
    update outbox.leaf l set emptied_at = null where l.name = of_name;
    return 'filled again';
  end if;
  execute format('drop table %s', leaf);
  delete from outbox.leaf l where l.name = of_name;
  return 'dropped';
exception when lock_not_available then
  return 'busy';
end $$;

-- Every leaf with what may be done about it, oldest first.
create or replace function outbox.leaves()
returns table (parent text, name text, from_value bigint, to_value bigint, closed boolean,
  frozen boolean, archived_as text, emptied boolean)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select p.parent, p.name, p.from_value, p.to_value, p.to_value is not null
    and outbox.last_value(p.parent) >= p.to_value - 1,
         l.frozen_at is not null, l.archived_as, l.emptied_at is not null and p.to_value is not null
    from outbox.partition p left join outbox.leaf l on l.name = p.name
   order by p.parent, p.from_value nulls last
$$;

-- What each subscription keeps from going: the first position it has not read, and the bytes of the leaves from there
-- on that hold something old.
create or replace function outbox.retention_report(days numeric default 7)
returns table (
  subscription text, first_pos bigint, since timestamptz, held_leaves integer, held_bytes bigint, served_at timestamptz,
  mode text)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select s.name, f.pos, e.created_at, b.leaves::integer, b.bytes, s.served_at, s.mode
    from outbox.subscription s
   cross join lateral (
     select n.pos, n.event_id from outbox.setting t cross join generate_series(0, t.lanes - 1) i
       join outbox.lane l on l.subscription = s.name and (s.lanes = 1 or l.lane = i)
      cross join lateral outbox.cursor_of(s.name, l.lane) c
      cross join lateral (select g.pos, g.event_id from outbox.log g where g.lane = i and g.pos > c.pos order by g.pos
                          limit 1) n
      order by n.pos limit 1) f
    left join outbox.event e on e.id = f.event_id
   cross join lateral (
     select count(*) as leaves, coalesce(sum(pg_total_relation_size(p.leaf)), 0)::bigint as bytes
       from outbox.partition p
      where f.pos <= outbox.old_pos(days)
        and (p.parent = 'log' and p.to_value > f.pos and p.from_value <= outbox.old_pos(days)
          or p.parent = 'event' and p.to_value > f.event_id
             and (select n.created_at from outbox.event n where n.id >= greatest(p.from_value, f.event_id)
                     and n.id < p.to_value order by n.id limit 1) <= outbox.clock() - days * interval '1 day')) b
   order by b.bytes desc, s.name
$$;
