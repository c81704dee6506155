-- define: subscriptions made at run time, as rows: kind of sink, settings, definition. Workers that have the kind serve
-- them. What a worker must know of a row carries the transaction that changed it; removed rows leave a note.

-- A new definition, or the next revision of one. `expected`: null = it must be new; else the revision that is changed.
-- Returns the revision. The hint to workers comes with COMMIT; whoever misses it learns from the next heartbeat.
create or replace function outbox.define(
  sub text, expected integer, of_kind text, settings jsonb, def jsonb, types text[], aggregates text[],
  lane_count smallint, ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text,
  start_pos bigint)
returns integer language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  known outbox.subscription;
  rev   integer;
begin
  -- The lock of outbox.subscribe.
  perform pg_advisory_xact_lock(1212370245, outbox.hash('subscription', sub));
  select * into known from outbox.subscription s where s.name = sub;
  perform outbox.assert_definable(sub, expected, known);
  if known.kind = of_kind and known.definition = def and settings = (
      select x.settings from outbox.sink_settings x where x.subscription = sub) then
    return known.revision;
  end if;
  rev := 1 + coalesce(known.revision, (select r.revision from outbox.removed r where r.subscription = sub), 0);
  perform outbox.subscribe(sub, rev, def, types, aggregates, lane_count, ordered, coalesced, ledger, dead_holds,
                           start_mode, start_pos);
  update outbox.subscription s set kind = of_kind where s.name = sub;
  insert into outbox.sink_settings as x (subscription, settings) values (sub, define.settings)
  on conflict (subscription) do update set settings = excluded.settings;
  perform pg_notify('hermod_outbox', 'defined');
  return rev;
end $$;

create or replace function outbox.assert_definable(sub text, expected integer, known outbox.subscription) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if known.name is null and expected is not null then
    perform outbox.refuse('HM022', format('HMD_SUBSCRIPTION_UNKNOWN: there is no subscription %s', sub));
  elsif known.name is not null and known.kind is null then
    perform outbox.refuse('HM020', format('HMD_SUBSCRIPTION_CONFLICT: %s is declared in code', sub),
      'Use another name, or change it where it is declared.');
  elsif known.name is not null and expected is null then
    perform outbox.refuse('HM020', format('HMD_SUBSCRIPTION_CONFLICT: there is a subscription %s already', sub),
      'Use another name, or change the one that is there.');
  elsif known.revision <> expected then
    perform outbox.refuse('HM020', format('HMD_SUBSCRIPTION_CONFLICT: %s has revision %s by now, not %s', sub,
      known.revision, expected), 'Somebody has changed it meanwhile: read it again.');
  end if;
end $$;

-- Deletes a subscription with its lanes, cursors and deliveries. The caller holds the locks of its lanes.
create or replace function outbox.remove(sub text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  delete from outbox.subscription s where s.name = sub;
  perform pg_notify('hermod_outbox', 'defined');
end $$;

-- What workers must know has changed: the next heartbeat of each returns this row.
create or replace function outbox.note_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end $$;

create or replace function outbox.note_removed() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into outbox.removed as r (subscription, revision) values (old.name, old.revision)
  on conflict (subscription) do update
    set revision = greatest(r.revision, excluded.revision), changed_in = excluded.changed_in, at = excluded.at;
  return null;
end $$;

do $$ begin
  if not exists (
    select from pg_catalog.pg_trigger t
     where t.tgrelid = 'outbox.subscription'::regclass and t.tgname = 'note_change') then
    create trigger note_change
      before insert or update of revision, definition, mode, lanes, kind, held_cause, probe_at on outbox.subscription
      for each row execute function outbox.note_change();
    create trigger note_removed after delete on outbox.subscription
      for each row execute function outbox.note_removed();
  end if;
end $$;
