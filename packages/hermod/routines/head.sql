-- What a worker reads of an event besides its payload, as one text.

-- An event without its payload, as one text: fields separated by U+001F, which occurs neither in JSON nor in an id.
-- The time is in whole milliseconds: how a session writes fractions (extra_float_digits) does not matter.
--   pos id kind created aggregate_id                                  the common case
--   +pos id kind created aggregate_id version mark names key headers   all fields
-- mark: 'held' = it is blocked; 'dead' = its aggregate has a dead letter; 'due 2' = a retry that is due, after 2
-- attempts. names: event type and aggregate type, if the kind has no code for them
create or replace function outbox.head(
  pos bigint, id bigint, kind smallint, created_at timestamptz, aggregate_id text,
  version smallint, mark text, names text, key text, headers json) returns text
language sql stable parallel safe
return case when version = 1 and mark is null and names is null and key is null and headers is null
  then concat_ws(E'\x1f', pos, id, kind, (date_part('epoch', created_at) * 1000)::bigint, aggregate_id)
  else concat_ws(E'\x1f', '+' || pos, id, kind, coalesce(((date_part('epoch', created_at) * 1000)::bigint)::text, ''),
                 coalesce(aggregate_id, ''),
    coalesce(version::text, ''), coalesce(mark, ''), coalesce(translate(names, E'\x1e\x1f', ''), ''), coalesce(key, ''),
      coalesce(headers::text, '')) end;
