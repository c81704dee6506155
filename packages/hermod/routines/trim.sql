-- trim: rows that are too old leave a leaf that cannot go as a whole. Such a leaf is still being filled (a table with
-- few rows fills one in years), or it holds something that is needed for longer. Rows go in small batches, oldest
-- first, each batch with one row in `audit`. Leaves that fill quickly are emptied before this is ever needed.

-- Rows are deleted when the oldest one is so many days older than the retention, and then down to the retention: about
-- once a day, not all the time. A day; less if little is kept. If much is kept, twice the time in which a leaf of a
-- busy table fills (see `leaf_rows`): such leaves go as a whole.
create or replace function outbox.trim_slack(days numeric) returns numeric
language sql immutable parallel safe
return greatest(least(days / 7, 1), days / 12);

-- The lowest position in a leaf of the log; null: it is empty.
create or replace function outbox.log_first(of_name text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  first bigint;
begin
  execute format($q$
    select min(n.pos) from outbox.setting t cross join generate_series(0, t.lanes - 1) i
     cross join lateral (select g.pos from outbox.%I g where g.lane = i order by g.pos limit 1) n $q$, of_name)
    into first;
  return first;
end $$;

-- Is the oldest row of a leaf so old that the leaf must be trimmed?
create or replace function outbox.overdue(of_parent text, of_name text, days numeric) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  late  numeric := days + outbox.trim_slack(days);
  first timestamptz;
begin
  if of_parent = 'log' then
    return coalesce(outbox.log_first(of_name) <= outbox.old_pos(late), false);
  end if;
  execute format('select t.%I from outbox.%I t order by t.id limit 1',
                 case of_parent when 'event' then 'created_at' else 'started_at' end, of_name) into first;
  return coalesce(first <= outbox.clock() - late * interval '1 day', false);
end $$;

-- The first position of a leaf of the log that must stay: too young, unread, kept for a journey, or waiting behind a
-- failed event of its aggregate.
create or replace function outbox.log_cut(of_name text, days numeric) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  cut bigint := coalesce(outbox.old_pos(days), 0) + 1;
  low bigint;
begin
  cut := least(cut, (select min(k.pos) + 1 from outbox.keep k));
  execute format($q$
    select min(n.pos) from outbox.subscription s
      join outbox.lane l on l.subscription = s.name
     cross join lateral outbox.cursor_of(s.name, l.lane) c
     cross join outbox.setting t cross join generate_series(0, t.lanes - 1) i
     cross join lateral (select g.pos from outbox.%1$I g where g.lane = i and g.pos > c.pos and g.pos < $1
                         order by g.pos limit 1) n
     where s.lanes = 1 or i = l.lane $q$, of_name) into low using cut;
  cut := least(cut, low);
  execute format($q$
    select min(g.pos) from outbox.delivery d
      join outbox.subscription s on s.name = d.subscription
      join outbox.%1$I g on g.hash = d.hash and g.pos > d.pos and g.pos < $1
     where d.pos < $1 and s.ordered and not s.ledger and (d.state = 'retrying' or d.state = 'dead' and s.dead_holds)
       and g.pos <= (select c.pos from outbox.cursor_of(s.name, d.lane) c) $q$, of_name) into low using cut;
  return least(cut, low);
end $$;

-- Deletes the lowest positions of a leaf, only those below `below` (what is in the archive; null: no archive). What
-- must stay is asked again each time: a replay may have begun. Returns how many went.
create or replace function outbox.trim_log(of_name text, days numeric, below bigint, rows_max integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms'
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  first bigint := outbox.log_first(of_name);
  cut   bigint;
  gone  bigint;
begin
  if first is null or not outbox.lock_leaf(of_name) then
    return 0;
  end if;
  -- A replay that is being created notes what it needs in a transaction that may not have committed yet.
  lock table outbox.keep in share mode;
  cut := least(outbox.log_cut(of_name, days), below, first + rows_max);
  execute format($q$
    delete from outbox.%I g using outbox.setting t, generate_series(0, 255) i
     where i < t.lanes and g.lane = i and g.pos >= $1 and g.pos < $2 $q$, of_name) using first, cut;
  get diagnostics gone = row_count;
  if gone > 0 then
    perform outbox.audit_policy('retention.log.rows', null, format('%s below position %s', of_name, cut), gone);
  end if;
  return gone;
exception when lock_not_available then
  return 0;
end $$;

-- One page of a leaf of events, from the lowest id above `after` on. An event goes when it was numbered, its position
-- has gone, and no open delivery needs it: those get their copy first. One statement decides and deletes, so that it
-- sees an event either scheduled or in the log. `last_id` is null when the walk is over.
create or replace function outbox.trim_events(
  of_name text, days numeric, after bigint, rows_max integer, out last_id bigint, out gone bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  cutoff timestamptz := outbox.clock() - days * interval '1 day';
  seen   pg_snapshot := (select coalesce(s.previous, s.snapshot) from outbox.step s order by s.id desc limit 1);
  ids    bigint[];
  full_page boolean;
begin
  gone := 0;
  if not outbox.lock_leaf(of_name) then
    return;
  end if;
  execute format($q$
    select array_agg(p.id order by p.id) filter (where p.created_at < $2), count(*) = $3 and bool_and(p.created_at < $2)
      from (select e.id, e.created_at from outbox.%I e where e.id > $1 order by e.id limit $3) p $q$, of_name)
    into ids, full_page using after, cutoff, rows_max;
  if ids is null then
    return;
  end if;
  last_id := case when full_page then ids[cardinality(ids)] end;
  perform outbox.copy_open(ids[1], ids[cardinality(ids)] + 1, rows_max);
  execute format($q$
    with in_log as materialized (select g.event_id from outbox.log g where g.event_id between $1[1] and $2),
         filed as materialized (select s.event_id from outbox.scheduled s where s.event_id between $1[1] and $2),
         needed as materialized (select d.event_id from outbox.delivery d where d.event_id between $1[1] and $2
                                    and d.event is null and d.state not in ('delivered', 'discarded'))
    delete from outbox.%I e
     where e.id = any ($1)
       and (pg_visible_in_snapshot(e.xid, $3) or e.id <= (select t.fenced_id from outbox.setting t))
       and e.id not in (select event_id from in_log)
       and e.id not in (select event_id from filed)
       and e.id not in (select event_id from needed) $q$, of_name) using ids, ids[cardinality(ids)], seen;
  get diagnostics gone = row_count;
  if gone > 0 then
    perform outbox.audit_policy('retention.event.rows', null,
                                format('%s up to id %s', of_name, ids[cardinality(ids)]), gone);
  end if;
exception when lock_not_available then
  gone := 0;
end $$;

-- The oldest attempts of a leaf. Returns how many went.
create or replace function outbox.trim_attempts(of_name text, days numeric, rows_max integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  gone bigint;
begin
  if not outbox.lock_leaf(of_name) then
    return 0;
  end if;
  execute format($q$
    delete from outbox.%1$I a where a.started_at < $2
       and a.id = any (array(select o.id from outbox.%1$I o order by o.id limit $1)) $q$, of_name)
    using rows_max, outbox.clock() - days * interval '1 day';
  get diagnostics gone = row_count;
  if gone > 0 then
    perform outbox.audit_policy('retention.attempt.rows', null, of_name, gone);
  end if;
  return gone;
exception when lock_not_available then
  return 0;
end $$;
