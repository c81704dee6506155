-- prune: rows that are old and needed by nobody.

-- A configured policy is a decision too: one row, with a request id of its own.
create or replace function outbox.audit_policy(of_action text, of_subscription text, what text, rows bigint)
returns void
language sql
begin atomic
  insert into outbox.audit (request_id, actor, action, subscription, reason, count)
  values ('retention:' || gen_random_uuid(), 'policy', of_action, of_subscription, what, rows);
end;

-- One expired delivery goes, under its lane's lock. What it held back is released first: nothing undelivered is lost
-- with it.
create or replace function outbox.expire_row(s outbox.subscription, d outbox.delivery) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  up_to bigint := (select c.pos from outbox.cursor_of(s.name, d.lane) c);
  holds boolean := d.state = 'dead' and s.dead_holds and s.ordered and not s.ledger;
begin
  if holds and s.coalesced then
    perform outbox.walk_to_newest(d, up_to);
  elsif holds then
    perform outbox.walk_on(d, up_to, true);
  end if;
  delete from outbox.delivery x where x.subscription = d.subscription and x.lane = d.lane and x.pos = d.pos;
end $$;

-- Deliveries in these states, lane by lane under its lock.
create or replace function outbox.prune_deliveries(days numeric, rows_max integer, states text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  cutoff timestamptz := outbox.clock() - days * interval '1 day';
  at     record;
  d      outbox.delivery;
  total  bigint := 0;
  n      bigint;
begin
  for at in
    select s, w.state, l.lane
      from outbox.subscription s join outbox.lane l on l.subscription = s.name
     cross join unnest(prune_deliveries.states) as w(state)
     where exists (select from outbox.delivery x where x.subscription = s.name and x.state = w.state
                   and x.updated_at < cutoff and x.lane = l.lane)
     order by s.name, l.lane
  loop
    exit when total >= rows_max;
    perform from outbox.lane l where l.subscription = (at.s).name and l.lane = at.lane for update skip locked;
    continue when not found;
    n := 0;
    for d in select * from outbox.delivery x where x.subscription = (at.s).name and x.state = at.state
                and x.lane = at.lane and x.updated_at < cutoff order by x.pos limit rows_max - total loop
      perform outbox.expire_row(at.s, d);
      n := n + 1;
    end loop;
    total := total + n;
    if n > 0 then
      perform outbox.audit_policy('retention.delivery', (at.s).name, format('%s in lane %s', at.state, at.lane), n);
    end if;
  end loop;
  return total;
end $$;

-- Expired deliveries that somebody may still ask for, oldest first, each with its event as far as it is known: one line
-- of JSON for the archive. At most 32 MiB of lines, but at least one. A raw line break in JSON is only white space.
create or replace function outbox.expired(days numeric, rows_max integer)
returns table (subscription text, lane smallint, pos bigint, updated_at timestamptz, line text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with old as (
    select d.*, translate('{' || concat_ws(',', '"subscription":' || to_json(d.subscription),
             '"position":"' || d.pos || '"', '"id":"' || d.event_id || '"', '"state":' || to_json(d.state),
             '"aggregate":' || json_build_array(d.aggregate_type, d.aggregate_id), '"attempts":' || d.attempts,
             '"firstFailedAt":' || to_json(d.first_failed_at), '"updatedAt":' || to_json(d.updated_at),
             '"code":' || to_json(d.code), '"error":' || to_json(d.error), '"reason":' || to_json(d.reason),
             '"receipt":' || d.receipt, '"correction":' || d.correction,
             '"event":' || coalesce(d.event, case when e.id is not null then outbox.copy_of(e) end)) || '}',
             E'\n\r', '  ') as line
      from outbox.subscription s
     cross join unnest(array['dead', 'unknown', 'discarded']) as w(state)
     cross join lateral (select x.* from outbox.delivery x where x.subscription = s.name and x.state = w.state
                            and x.updated_at < outbox.clock() - days * interval '1 day'
                          order by x.updated_at limit rows_max) d
      left join outbox.event e on e.id = d.event_id
     order by d.updated_at, d.subscription, d.pos limit rows_max)
  select o.subscription, o.lane, o.pos, o.updated_at, o.line
    from (select old.*, sum(octet_length(old.line)) over w as bytes, row_number() over w as n from old
          window w as (order by old.updated_at, old.subscription, old.pos)) o
   where o.bytes <= 33554432 or o.n = 1
   order by o.n
$$;

-- Removes deliveries of a lane that are in the archive now, unless somebody acted on them meanwhile.
create or replace function outbox.prune_archived(
  sub text, of_lane smallint, positions bigint[], updated timestamptz[], place text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  s outbox.subscription;
  d outbox.delivery;
  n bigint := 0;
begin
  select * into s from outbox.subscription x where x.name = sub;
  perform from outbox.lane l where l.subscription = sub and l.lane = of_lane for update skip locked;
  if not found then
    return 0;
  end if;
  for d in select x.* from unnest(positions, updated) as u(pos, at)
             join outbox.delivery x on x.subscription = sub and x.lane = of_lane and x.pos = u.pos
              and x.updated_at = u.at and x.state in ('dead', 'unknown', 'discarded')
            order by x.pos loop
    perform outbox.expire_row(s, d);
    n := n + 1;
  end loop;
  if n > 0 then
    perform outbox.audit_policy('retention.delivery', sub, format('lane %s, archived in %s', of_lane, place), n);
  end if;
  return n;
end $$;

-- Small leftovers, a bounded number of each; the caller comes back while there are more.
create or replace function outbox.prune(event_days numeric, delivery_days numeric, key_days numeric, rows_max integer)
returns table (what text, rows bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('upkeep', 'pruning')) then
    return;
  end if;
  with old as (select i.key from outbox.idempotency i where i.created_at < now - key_days * interval '1 day'
               limit rows_max for update skip locked),
       gone as (delete from outbox.idempotency i using old where i.key = old.key returning 1)
  select 'keys', count(*) into what, rows from gone; return next;
  with old as (select i.consumer, i.message_id from outbox.inbox i where i.at < now - delivery_days * interval '1 day'
               limit rows_max for update skip locked),
       gone as (delete from outbox.inbox i using old where i.consumer = old.consumer and i.message_id = old.message_id
                returning 1)
  select 'inbox', count(*) into what, rows from gone; return next;
  -- Of the old steps the newest stays: it says which positions are old, also after a silence, and may be the newest of
  -- all.
  with gone as (delete from outbox.step s where s.id in (
         select o.id from outbox.step o where o.at < now - (event_days + 1) * interval '1 day'
            and o.id < (select m.id from outbox.step m where m.at < now - (event_days + 1) * interval '1 day'
                        order by m.at desc, m.id desc limit 1)
          order by o.at limit rows_max) returning 1)
  select 'steps', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.cursor c using outbox.lane l
                cross join lateral outbox.cursor_of(l.subscription, l.lane) n
         where c.subscription = l.subscription and c.lane = l.lane and (c.fence, c.pos) < (n.fence, n.pos) returning 1)
  select 'cursors', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.shadow c using outbox.lane l
                cross join lateral outbox.shadow_of(l.subscription, l.lane) n
         where c.subscription = l.subscription and c.lane = l.lane and (c.fence, c.pos) < (n.fence, n.pos) returning 1)
  select 'shadows', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.worker w where w.heartbeat_at < now - interval '1 day' returning 1)
  select 'workers', count(*) into what, rows from gone; return next;
  with gone as (delete from outbox.removed r where r.at < now - interval '1 day' returning 1)
  select 'removed', count(*) into what, rows from gone; return next;
end $$;
