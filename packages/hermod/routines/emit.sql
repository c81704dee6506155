-- emit: inside the caller's transaction. The producer role may execute these functions and nothing else.

-- What must hold for every event, whoever emits it; null or false: `event_problem` says in words what is wrong. U+001E
-- and U+001F separate the fields that workers read. Written into its callers by the planner.
create or replace function outbox.is_event(
  type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) returns boolean
language sql immutable parallel safe
return octet_length(type) between 1 and 128 and octet_length(aggregate_type) between 1 and 128
  and octet_length(aggregate_id) between 1 and 512 and translate(aggregate_id, E'\x1e\x1f', '') = aggregate_id
  and bytes between 1 and 262144 and version >= 1 and (key is null or translate(key, E'\x1e\x1f', '') = key);

create or replace function outbox.assert_event(
  type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) returns void
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  if outbox.is_event(type, aggregate_type, aggregate_id, bytes, version, key) then
    return;
  end if;
  perform outbox.refuse(case when bytes > 262144 then 'HM003' else 'HM002' end, coalesce(
    outbox.event_problem(type, aggregate_type, aggregate_id, bytes, version, key),
    'HMD_EVENT_INVALID: the payload must have 1 to 262144 bytes'));
end $$;

-- Text that needs no closer look: no escape that could stand for U+0000 or half a character, and at most 64 brackets.
-- E'': the session may read a backslash in '' as an escape. Written into its callers by the planner.
create or replace function outbox.is_plain(payload text, headers text) returns boolean
language sql immutable parallel safe
return strpos(payload, E'\\u') = 0
  and octet_length(payload) - octet_length(replace(replace(payload, '[', ''), '{', '')) <= 64
  and (headers is null
       or left(headers, 1) = '{' and octet_length(headers) <= 8192 and strpos(headers, E'\\u') = 0);

-- Nested deeper than 64 levels? Without strings, only brackets are left; each round takes the innermost ones away.
create or replace function outbox.is_deep(payload text) returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  brackets text := regexp_replace(regexp_replace(payload, E'"([^"\\\\]|\\\\.)*"', '', 'g'), E'[^][{}]', '', 'g');
begin
  brackets := translate(brackets, '{}', '[]');
  for i in 1 .. 64 loop
    exit when brackets = '';
    brackets := replace(brackets, '[]', '');
  end loop;
  return brackets <> '';
end $$;

-- The closer look. A payload that PostgreSQL stores as JSON and cannot read back would stop whoever reads it.
create or replace function outbox.assert_payload(payload text) returns void
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  if outbox.is_deep(payload) then
    perform outbox.refuse('HM003',
      'HMD_PAYLOAD_TOO_LARGE: the payload is nested deeper than 64 levels; flatten it or emit a reference');
  end if;
  -- Reads every string of it, as every reader will.
  perform json_strip_nulls(payload::json);
exception when untranslatable_character or invalid_text_representation then
  perform outbox.refuse('HM005', format('HMD_PAYLOAD_INVALID: the payload %s', case sqlstate
    when '22P05' then 'holds an escape (U+0000, or a character this encoding lacks) that PostgreSQL cannot store'
    else 'is not JSON, or holds half a surrogate pair' end));
end $$;

-- Headers as they are stored: names in lower case, or null when there are none. Refuses what is no object of strings.
create or replace function outbox.headers_text(headers text) returns text
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  given jsonb;
begin
  given := headers::jsonb;
  if jsonb_typeof(given) <> 'object' or exists (
       select from jsonb_each(given) h
        where jsonb_typeof(h.value) <> 'string' or h.key !~ '^[A-Za-z0-9_.-]{1,64}$'
           or octet_length(h.value #>> '{}') > 2048 or h.value #>> '{}' ~ E'[\r\n]')
     or (select count(*) > 64 or count(*) <> count(distinct lower(k)) from jsonb_object_keys(given) k) then
    raise invalid_text_representation;
  end if;
  return (select jsonb_object_agg(lower(h.key), h.value)::text from jsonb_each(given) h);
exception when invalid_text_representation or untranslatable_character or numeric_value_out_of_range then
  perform outbox.refuse('HM002',
    'HMD_EVENT_INVALID: headers must be a JSON object of at most 64 names [a-z0-9_.-] and strings of at most '
    || '2048 bytes without CR and LF');
end $$;

-- Many events in one statement. Arrays are of one length or null; the caller has validated the events, what must never
-- be broken is looked at again.
create or replace function outbox.emit_many(
  types text[], aggregate_types text[], aggregate_ids text[], payloads text[],
  versions smallint[] default null, headers text[] default null,
  not_before timestamptz[] default null, keys text[] default null
) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if cardinality(types) > 10000 then
    perform outbox.refuse('HM004', format('HMD_EVENT_LIMIT: %s events in one call, at most 10000', cardinality(types)));
  end if;
  if keys is null then
    perform outbox.assert_event(e.type, e.aggregate_type, e.aggregate_id, octet_length(e.payload),
                                coalesce(e.version, 1), null)
       from unnest(types, aggregate_types, aggregate_ids, payloads, versions)
         as e(type, aggregate_type, aggregate_id, payload, version)
      where outbox.is_event(e.type, e.aggregate_type, e.aggregate_id, octet_length(e.payload), coalesce(e.version, 1),
                            null) is not true;
    perform outbox.assert_payload(e.payload), outbox.headers_text(e.headers)
       from unnest(payloads, headers) as e(payload, headers) where not outbox.is_plain(e.payload, e.headers);
    return query
      insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes, version, headers, not_before)
      select e.type, e.aggregate_type, e.aggregate_id, e.payload::json, octet_length(e.payload),
             coalesce(e.version, 1::smallint), e.headers::json, e.not_before
        from unnest(types, aggregate_types, aggregate_ids, payloads, versions, headers, not_before)
          as e(type, aggregate_type, aggregate_id, payload, version, headers, not_before)
      returning event.id;
    return;
  end if;
  return query select * from outbox.emit_keyed(types, aggregate_types, aggregate_ids, payloads, versions, headers,
                                               not_before, keys);
end $$;

-- One event without a key, the common case: a quarter cheaper than an array of one.
create or replace function outbox.emit_one(
  type text, aggregate_type text, aggregate_id text, payload text, version smallint, headers text,
  not_before timestamptz) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  new_id bigint;
begin
  if outbox.is_event(emit_one.type, emit_one.aggregate_type, emit_one.aggregate_id, octet_length(emit_one.payload),
                     emit_one.version, null) is not true then
    perform outbox.assert_event(emit_one.type, emit_one.aggregate_type, emit_one.aggregate_id,
                                octet_length(emit_one.payload), emit_one.version, null);
  end if;
  if not outbox.is_plain(emit_one.payload, emit_one.headers) then
    perform outbox.assert_payload(emit_one.payload), outbox.headers_text(emit_one.headers);
  end if;
  insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes, version, headers, not_before)
  values (emit_one.type, emit_one.aggregate_type, emit_one.aggregate_id, emit_one.payload::json,
          octet_length(emit_one.payload),
          emit_one.version, emit_one.headers::json, emit_one.not_before)
  returning id into new_id;
  return new_id;
end $$;

-- With idempotency keys: the key first, then the event. The same key again is the same event; with another body, an
-- error.
create or replace function outbox.emit_keyed(
  types text[], aggregate_types text[], aggregate_ids text[], payloads text[],
  versions smallint[], headers text[], not_before timestamptz[], keys text[]
) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  e record;
  new_id bigint;
  known record;
  body bytea;
  xid xid8 := pg_current_xact_id();   -- before the first id: the insert may wait for a key after it
begin
  for e in
    select * from unnest(types, aggregate_types, aggregate_ids, payloads, versions, headers, not_before, keys)
      as u(type, aggregate_type, aggregate_id, payload, version, headers, not_before, key)
  loop
    perform outbox.assert_event(e.type, e.aggregate_type, e.aggregate_id, octet_length(e.payload),
                                coalesce(e.version, 1), e.key);
    if not outbox.is_plain(e.payload, e.headers) then
      perform outbox.assert_payload(e.payload), outbox.headers_text(e.headers);
    end if;
    new_id := nextval('outbox.event_id');
    if e.key is not null then
      body := sha256(convert_to(concat_ws(E'\x1f', e.type, e.aggregate_type, e.aggregate_id, coalesce(e.version, 1),
                                          e.payload), 'UTF8'));
      insert into outbox.idempotency (key, event_id, hash) values (e.key, new_id, body) on conflict (key) do nothing;
      if not found then
        select i.event_id, i.hash into known from outbox.idempotency i where i.key = e.key;
        if known.hash is distinct from body then
          perform outbox.refuse('HM008', format('HMD_IDEMPOTENCY_CONFLICT: the key %s was used for another event',
            quote_literal(e.key)));
        end if;
        return next known.event_id;
        continue;
      end if;
    end if;
    insert into outbox.event (id, type, aggregate_type, aggregate_id, payload, bytes, version, headers, not_before, key)
    values (new_id, e.type, e.aggregate_type, e.aggregate_id, e.payload::json, octet_length(e.payload),
            coalesce(e.version, 1::smallint), e.headers::json, e.not_before, e.key);
    return next new_id;
  end loop;
end $$;

-- What is wrong with an event, in words; null when nothing is.
create or replace function outbox.event_problem(
  type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) returns text
language sql immutable parallel safe
return case
  when type is null or octet_length(type) > 128 or type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$'
    then 'HMD_EVENT_INVALID: type must be noun.verbed ([a-z][a-z0-9_]*, dotted, at most 128 bytes)'
  when aggregate_type is null or octet_length(aggregate_type) > 128
    or aggregate_type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$'
    then 'HMD_EVENT_INVALID: aggregate_type must be [a-z][a-z0-9_]*, at most 128 bytes'
  when aggregate_id is null or octet_length(aggregate_id) not between 1 and 512
         or translate(aggregate_id, E'\x1e\x1f', '') <> aggregate_id
    then 'HMD_EVENT_INVALID: aggregate_id must have 1 to 512 bytes, without U+001E and U+001F'
  when bytes > 262144
    then format('HMD_PAYLOAD_TOO_LARGE: the payload has %s bytes, at most 262144; emit a reference', bytes)
  when version not between 1 and 32767
    then 'HMD_EVENT_INVALID: version must be 1 to 32767'
  when octet_length(key) not between 1 and 200 or translate(key, E'\x1e\x1f', '') <> key
    then 'HMD_EVENT_INVALID: key must have 1 to 200 bytes, without U+001E and U+001F'
end;

-- For everyone who speaks SQL: select outbox.emit('document.updated', 'document', $1, $2).
create or replace function outbox.emit(
  type text, aggregate_type text, aggregate_id text, payload json default null,
  headers json default null, not_before timestamptz default null, key text default null, version integer default 1
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  body text := coalesce(payload::text, 'null');
  problem text := case when not isfinite(not_before) then 'HMD_EVENT_INVALID: not_before must be a moment'
    else outbox.event_problem(type, aggregate_type, aggregate_id, octet_length(body), version, key) end;
begin
  if problem is not null then
    perform outbox.refuse(case when problem like 'HMD_PAYLOAD%' then 'HM003' else 'HM002' end, problem);
  end if;
  return (select * from outbox.emit_many(array[type], array[aggregate_type], array[aggregate_id], array[body],
    array[version::smallint], array[outbox.headers_text(headers::text)], array[not_before],
    case when key is not null then array[key] end));
end $$;

-- Locks aggregates for the rest of the transaction, in one order for everybody, so that two callers cannot deadlock.
create or replace function outbox.lock(aggregate_types text[], aggregate_ids text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  h integer;
begin
  if cardinality(aggregate_types) > 100 then
    perform outbox.refuse('HM009', format('HMD_LOCK_LIMIT: %s aggregates, at most 100', cardinality(aggregate_types)));
  end if;
  for h in select distinct outbox.hash(t, i) as hash from unnest(aggregate_types, aggregate_ids) as a(t, i)
    order by 1 loop
    perform pg_advisory_xact_lock(1212370244, h);
  end loop;
end $$;
