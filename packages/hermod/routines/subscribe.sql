-- subscribe: a definition under its revision, its filter from a position on, its lanes and cursors.

-- Installs or raises a subscription's definition. Same revision, same definition: nothing happens.
create or replace function outbox.subscribe(
  sub text, rev integer, def jsonb, types text[], aggregates text[], lane_count smallint,
  ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text, start_pos bigint)
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  known outbox.subscription;
  head  bigint;
begin
  perform pg_advisory_xact_lock(1212370245, outbox.hash('subscription', sub));
  select * into known from outbox.subscription s where s.name = sub;
  if known.revision < rev then
    -- No settle under the old definition may pass the position where the new one starts: lock first, then look.
    perform from outbox.lane l where l.subscription = sub order by l.lane for update;
  end if;
  select coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0) into head;
  if known.name is null then
    insert into outbox.subscription (name, revision, definition, mode, lanes, ordered, coalesced, ledger, dead_holds,
                                     start_pos)
    values (sub, rev, def, start_mode, lane_count, ordered, coalesced, ledger, dead_holds,
            coalesce(subscribe.start_pos, head));
    insert into outbox.lane (subscription, lane) select sub, n from generate_series(0, lane_count - 1) n;
    insert into outbox.cursor (subscription, lane, fence, pos) select sub, n, 0, coalesce(subscribe.start_pos, head)
      from generate_series(0, lane_count - 1) n;
    insert into outbox.filter (subscription, from_pos, types, aggregates)
      values (sub, least(coalesce(subscribe.start_pos, head), 0), subscribe.types, subscribe.aggregates);
  elsif known.kind is not null and not def ? 'kind' then
    perform outbox.refuse('HM020', format('HMD_SUBSCRIPTION_CONFLICT: %s was made at run time, with a sink of kind %s',
      sub, known.kind), 'Subscribe under another name, or remove the one that is there.');
  elsif known.revision > rev then
    return;   -- This worker is outdated: it neither claims nor settles, and its heartbeat says so.
  elsif known.revision = rev and known.definition <> def then
    perform outbox.refuse('HM020', format(
      'HMD_SUBSCRIPTION_CONFLICT: %s revision %s is installed with another definition; raise its revision', sub, rev));
  elsif known.lanes <> lane_count or known.ledger <> subscribe.ledger then
    perform outbox.refuse('HM020',
      format('HMD_SUBSCRIPTION_CONFLICT: lanes and ledger mode of %s are fixed; use another name', sub));
  elsif known.revision < rev then
    update outbox.subscription s set revision = rev, definition = def, ordered = subscribe.ordered,
           coalesced = subscribe.coalesced, dead_holds = subscribe.dead_holds where s.name = sub;
    insert into outbox.filter (subscription, from_pos, types, aggregates)
      values (sub, head, subscribe.types, subscribe.aggregates)
    on conflict on constraint filter_pkey do update set types = excluded.types, aggregates = excluded.aggregates;
    perform outbox.release_blocked(known, (select s from outbox.subscription s where s.name = sub));
  end if;
end $$;

-- A new policy no longer blocks later events of an aggregate: those below a cursor get rows, else they would never be
-- sent.
create or replace function outbox.release_blocked(before outbox.subscription, after outbox.subscription) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  d     outbox.delivery;
  next  record;
  up_to bigint;
begin
  for d in
    select x.* from outbox.delivery x where x.subscription = after.name and not after.ledger
       and ((x.state = 'retrying' and before.ordered and not (after.ordered or after.coalesced))
         or (x.state = 'dead' and before.dead_holds and not after.dead_holds))
     order by x.lane, x.pos
  loop
    up_to := (select c.pos from outbox.cursor_of(after.name, d.lane) c);
    loop
      select * into next from outbox.follower(d, up_to);
      exit when next.pos is null;
      perform outbox.send_next(d, next.pos, next.event_id);
      exit when after.ordered or after.coalesced;   -- the row walks on by itself
      d.pos := next.pos;
    end loop;
  end loop;
end $$;

-- Does what a foreign key would do, after the real ones: lanes are locked by then, so no settle can follow.
create or replace function outbox.forget_cursors() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  delete from outbox.cursor c where c.subscription = old.name;
  delete from outbox.shadow c where c.subscription = old.name;
  return null;
end $$;

do $$ begin
  if not exists (
    select from pg_catalog.pg_trigger t
     where t.tgrelid = 'outbox.subscription'::regclass and t.tgname = 'zz_forget_cursors') then
    create trigger zz_forget_cursors after delete on outbox.subscription
      for each row execute function outbox.forget_cursors();
  end if;
end $$;
