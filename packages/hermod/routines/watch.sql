-- watch: rows written by any program become events, by triggers on their table. What it does not see: rows written
-- under session_replication_role = replica (logical replication, pg_restore --disable-triggers), and DROP or DETACH of
-- a partition.
--
--   INSERT → created      UPDATE of a watched column → updated      DELETE → deleted
--   UPDATE of the key → deleted (old key), created (new key)        TRUNCATE → refused, or one refreshed per row

create or replace function outbox.refuse_watch(says text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform outbox.refuse('HM040', 'HMD_WATCH_INVALID: ' || says);
end $$;

-- One key column: its text. Several: a JSON array without spaces, so that different keys have different texts.
create or replace function outbox.key_text(key jsonb, image jsonb) returns text
language sql immutable parallel safe
return case jsonb_array_length(key) when 1 then image ->> (key ->> 0)
  else (select '[' || string_agg((image -> k.name)::text, ',' order by k.n) || ']'
        from jsonb_array_elements_text(key) with ordinality k(name, n)) end;

-- Headers from the session: `set local hermod.actor = '…'`, `set local hermod.headers = '{"endpoint": "…"}'`.
create or replace function outbox.session_headers() returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  actor text := nullif(current_setting('hermod.actor', true), '');
begin
  return nullif(coalesce(outbox.headers_text(nullif(current_setting('hermod.headers', true), ''))::jsonb, '{}')
    || case when actor is null then '{}' else jsonb_build_object('actor', actor) end, '{}');
exception when sqlstate 'HM002' then
  perform outbox.refuse('HM002',
    'HMD_EVENT_INVALID: the setting hermod.headers must be a JSON object of names and strings');
end $$;

-- Writes one event about a row. If it is too large for a payload: a reference, which says so in a header.
create or replace function outbox.capture_row(o jsonb, event text, image jsonb, body jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  id      text := outbox.key_text(o -> 'key', image);
  text    text := coalesce(body::text, 'null');
  headers jsonb := outbox.session_headers();
begin
  if octet_length(id) > 512 then
    perform outbox.refuse('HM002', format('HMD_EVENT_INVALID: the key of this %s has %s bytes, at most 512',
      o ->> 'type', octet_length(id)));
  elsif octet_length(text) > 262144 then
    headers := coalesce(headers, '{}') || jsonb_build_object('x-truncated', octet_length(text)::text);
    text := 'null';
  end if;
  perform outbox.assert_event(o -> 'events' ->> event, o ->> 'type', id, octet_length(text), 1, null);
  insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes, headers)
  values (o -> 'events' ->> event, o ->> 'type', id, text::json, octet_length(text), headers::json);
end $$;

-- The part of a row in a payload: the columns asked for, never a virtual one (triggers do not see its value).
create or replace function outbox.capture_body(o jsonb, image jsonb) returns jsonb
language sql immutable parallel safe
return case when o ->> 'payload' = 'reference' then null
  when o -> 'columns' <> 'null' then (select jsonb_object_agg(c.name, image -> c.name)
                                      from jsonb_array_elements_text((o -> 'columns') || (o -> 'key')) c(name))
  else image - array(select jsonb_array_elements_text(o -> 'virtual')) end;

-- The event of a deleted row contains only the key.
create or replace function outbox.capture_key(o jsonb, image jsonb) returns jsonb
language sql immutable parallel safe
return case when o ->> 'payload' = 'reference' then null
  else (select jsonb_object_agg(k.name, image -> k.name) from jsonb_array_elements_text(o -> 'key') k(name)) end;

-- Times in UTC, whatever the session's zone: the same row is the same text.
create or replace function outbox.capture() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  o     jsonb := tg_argv[0]::jsonb;
  now   jsonb;
  was   jsonb;
  moved boolean;
begin
  begin
    now := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    was := case when tg_op <> 'INSERT' then to_jsonb(old) end;
  exception when untranslatable_character or invalid_text_representation then
    perform outbox.refuse('HM005', format(
      'HMD_PAYLOAD_INVALID: a json column of %I.%I holds an escape (U+0000 or half a surrogate pair) nobody can read',
      tg_table_schema, tg_table_name));
  end;
  moved := tg_op = 'UPDATE' and outbox.key_text(o -> 'key', was) is distinct from outbox.key_text(o -> 'key', now);
  if tg_op = 'DELETE' or moved then
    perform outbox.capture_row(o, 'delete', was, outbox.capture_key(o, was));
  end if;
  if tg_op <> 'DELETE' then
    perform outbox.capture_row(o, case when tg_op = 'INSERT' or moved then 'insert'
                               else 'update' end, now, outbox.capture_body(o, now));
  end if;
  return null;
end $$;

create or replace function outbox.capture_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  o jsonb := tg_argv[0]::jsonb;
begin
  if o ->> 'truncate' = 'refuse' then
    perform outbox.refuse_watch(format(
      '%s.%s is watched, and TRUNCATE says nothing about rows: delete them, or watch it with truncate refresh',
      quote_ident(tg_table_schema), quote_ident(tg_table_name)));
  end if;
  execute format($q$
    select outbox.assert_event($1 #>> '{events,refresh}', $1 ->> 'type', outbox.key_text($1 -> 'key', to_jsonb(r)),
             4, 1, null)
      from %I.%I r $q$, tg_table_schema, tg_table_name) using o;
  execute format($q$
    insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes, headers)
    select $1 #>> '{events,refresh}', $1 ->> 'type', outbox.key_text($1 -> 'key', to_jsonb(r)), 'null', 4, $2::json
      from %I.%I r $q$, tg_table_schema, tg_table_name) using o, outbox.session_headers();
  return null;
end $$;

-- The options, complete; refuses what could not work.
create or replace function outbox.watch_options(target regclass, given jsonb) returns jsonb
language plpgsql as $$
declare
  columns text[] := array(select a.attname from pg_attribute a
                          where a.attrelid = target and a.attnum > 0 and not a.attisdropped and a.attgenerated <> 'v');
  virtual text[] := array(select a.attname from pg_attribute a
                          where a.attrelid = target and a.attnum > 0 and not a.attisdropped and a.attgenerated = 'v');
  noun    text := given ->> 'type';
  key     jsonb := coalesce(nullif(given -> 'key', 'null'), (select to_jsonb(array_agg(a.attname order by k.n))
                                                             from pg_index i
    cross join unnest(i.indkey::smallint[]) with ordinality k(attnum, n)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    where i.indrelid = target and i.indisprimary));
  o       jsonb;
  wrong   text;
begin
  if key is null or jsonb_array_length(key) = 0 then
    perform outbox.refuse_watch(format('%s has no primary key: name the columns of its key', target));
  end if;
  select c.name into wrong from jsonb_array_elements_text(key
                                                          || coalesce(nullif(given -> 'columns', 'null'), '[]')) c(name)
                                                            where c.name <> all (columns) limit 1;
  if wrong is not null then
    perform outbox.refuse_watch(format('%s has no column %s%s', target, quote_ident(wrong), case
                                       when wrong = any (virtual) then ' that a trigger can see: it is virtual'
                                         else '' end));
  end if;
  -- With an index that is checked at once, a key is given up before it is taken again, so events of a key come in the
  -- right order.
  if not exists (select from pg_index i where i.indrelid = target and i.indisunique and i.indimmediate and i.indisvalid
                 and i.indpred is null and i.indexprs is null
       and not exists (select from unnest((i.indkey::smallint[])[0:i.indnkeyatts - 1]) k(attnum)
                       join pg_attribute a on a.attrelid = target and a.attnum = k.attnum
                        where not (key ? a.attname) or not a.attnotnull)) then
    perform outbox.refuse_watch(format(
      'the key %s of %s must be not null and have a unique index that is not deferrable', key, target));
  end if;
  o := jsonb_build_object('type', noun, 'key', key, 'columns', given -> 'columns', 'virtual', to_jsonb(virtual),
    'payload', coalesce(given ->> 'payload', 'row'), 'truncate', coalesce(given ->> 'truncate', 'refuse'),
    'events', jsonb_build_object('insert', noun || '.created', 'update', noun || '.updated', 'delete',
                                 noun || '.deleted', 'refresh', noun || '.refreshed')
              || coalesce(nullif(given -> 'events', 'null'), '{}'));
  select outbox.event_problem(e.value, noun, 'x', 1, 1, null) into wrong from jsonb_each_text(o -> 'events') e
   where outbox.event_problem(e.value, noun, 'x', 1, 1, null) is not null limit 1;
  if wrong is not null or noun is null then
    perform outbox.refuse_watch(format('%s: %s', target, coalesce(split_part(wrong, ': ', 2), 'type must be given')));
  elsif o ->> 'payload' not in ('row', 'reference') or o ->> 'truncate' not in ('refuse', 'refresh') then
    perform outbox.refuse_watch(format('%s: payload must be row or reference, truncate must be refuse or refresh',
                                       target));
  end if;
  return o;
end $$;

-- Tables that cannot be watched, and those whose events would cause further events.
create or replace function outbox.refuse_table(target regclass, truncate text, written text[]) returns void
language plpgsql as $$
declare
  t     record;
  owner oid := (select p.proowner from pg_proc p where p.oid = 'outbox.capture_truncate'::regproc);
  sink  text;
begin
  select c.*, n.nspname into t from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = target;
  if t.relkind not in ('r', 'p') or t.relpersistence = 't' or t.nspname in ('pg_catalog', 'information_schema') then
    perform outbox.refuse_watch(format('%s is not an ordinary table', target));
  elsif t.nspname = 'outbox' then
    perform outbox.refuse_watch(format('%s belongs to Hermod itself', target));
  elsif t.relispartition then
    perform outbox.refuse_watch(format('%s is a partition: watch the table it belongs to', target));
  elsif truncate = 'refresh' and not has_table_privilege(owner, target, 'select') then
    perform outbox.refuse_watch(format('truncate refresh reads %s: grant select on it to %s', target, owner::regrole));
  end if;
  select s.name into sink from outbox.subscription s
   cross join lateral jsonb_array_elements_text(coalesce(s.definition #> '{sink,tables}', s.definition -> 'tables',
                                                         '[]')) w(name)
   where to_regclass(w.name) = target limit 1;
  if sink is not null or exists (select from unnest(written) w where to_regclass(w) = target) then
    perform outbox.refuse_watch(format('%s is written by a sink%s: it would hear itself for ever', target,
                                       coalesce(' of ' || sink, '')));
  end if;
end $$;

create or replace function outbox.unwatch(target text) returns boolean
language plpgsql set lock_timeout = '10s' as $$
declare
  rel regclass := to_regclass(target);
  t   record;
begin
  if rel is null then
    perform outbox.refuse_watch(format('there is no table %s', target));
  end if;
  for t in select g.tgname, g.tgrelid::regclass as relation from pg_trigger g
            where g.tgrelid in (select rel union select p.relid from pg_partition_tree(rel) p) and g.tgparentid = 0
              and starts_with(g.tgname, '00_hermod_') loop
    execute format('drop trigger %I on %s', t.tgname, t.relation);
  end loop;
  delete from outbox.watched w where w.relation = rel;
  return found;
end $$;

-- Installs the triggers, or replaces those with other options. False: it was already watched with the same options.
create or replace function outbox.watch(target text, given jsonb, written text[] default '{}') returns boolean
language plpgsql set lock_timeout = '10s' as $$
declare
  rel regclass := to_regclass(target);
  o   jsonb;
  leaf regclass;
  changed text;
begin
  if rel is null then
    perform outbox.refuse_watch(format('there is no table %s', target));
  end if;
  perform outbox.refuse_table(rel, given ->> 'truncate', written);
  o := outbox.watch_options(rel, given);
  perform pg_advisory_xact_lock(1212370248, rel::oid::int8::bit(32)::int4);
  if exists (select from outbox.watched w where w.relation = rel and w.options = o)
     and (select count(*) from pg_trigger t where t.tgrelid = rel and starts_with(t.tgname, '00_hermod_')) = 4 then
    return false;
  end if;
  perform outbox.unwatch(target);
  select case when o -> 'columns' = 'null' and o -> 'virtual' = '[]' then 'old.* *<> new.*'
    else format('row(%s)::record *<> row(%s)::record', string_agg('old.' || quote_ident(c.name), ', '),
                string_agg('new.' || quote_ident(c.name), ', ')) end into changed
    from (select a.attname as name from pg_attribute a where a.attrelid = rel and a.attnum > 0 and not a.attisdropped
          and a.attgenerated <> 'v'
             and (o -> 'columns' = 'null' or (o -> 'columns') || (o -> 'key') ? a.attname)) c;
  -- The name starts with a digit, so that it fires before other triggers of the table: their changes come later.
  execute format(
    'create trigger "00_hermod_insert" after insert on %s for each row execute function outbox.capture(%L)', rel, o);
  execute format(
    'create trigger "00_hermod_update" after update on %s for each row when (%s) execute function outbox.capture(%L)',
    rel, changed, o);
  execute format(
    'create trigger "00_hermod_delete" after delete on %s for each row execute function outbox.capture(%L)', rel, o);
  for leaf in select rel union select p.relid from pg_partition_tree(rel) p where o ->> 'truncate' = 'refuse' loop
    execute format($q$
      create trigger "00_hermod_truncate" before truncate on %s
        for each statement execute function outbox.capture_truncate(%L) $q$, leaf, o);
  end loop;
  insert into outbox.watched (relation, name, options)
  select rel, format('%I.%I', n.nspname, c.relname), o from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = rel;
  return true;
end $$;
