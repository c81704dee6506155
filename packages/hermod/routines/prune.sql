-- prune: rows that are old and needed by nobody.

-- A configured policy is a decision too: one row, with a request id of its own.
create or replace function outbox.audit_policy(of_action text, of_subscription text, what text, rows bigint)
returns void
language sql
begin atomic
  insert into outbox.audit (request_id, actor, action, subscription, reason, count)
  values ('retention:' || gen_random_uuid(), 'policy', of_action, of_subscription, what, rows);
end;

-- Dead letters, receipts and what was given up, lane by lane under its lock. Followers held behind a dead letter are
-- released before it goes: nothing undelivered is lost with it.
create or replace function outbox.prune_deliveries(days numeric, rows_max integer) returns bigint
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
     where exists (select from outbox.delivery x where x.subscription = s.name and x.state = w.state
                   and x.updated_at < cutoff and x.lane = l.lane)
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
create or replace function outbox.prune(event_days numeric, delivery_days numeric, key_days numeric, rows_max integer)
returns table (what text, rows bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  now timestamptz := outbox.clock();
begin
  if not pg_try_advisory_xact_lock(1212370246, outbox.hash('upkeep', 'pruning')) then
    return;
  end if;
  return query select 'deliveries', outbox.prune_deliveries(delivery_days, rows_max);
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
