-- What a worker reads of an event, as text: its fields, and its payload.

-- An event without its payload, as one text: fields separated by U+001F, which occurs neither in JSON nor in an id.
-- The time is in whole milliseconds: how a session writes fractions (extra_float_digits) does not matter.
--   pos id kind created aggregate_id                                  the common case
--   +pos id kind created aggregate_id version mark names key headers   all fields
-- mark: 'blocked' = it is not sent now, and goes without headers and payload; 'dead' = its aggregate has a dead letter;
-- 'due 2' = a retry that is due, after 2 attempts. names: event type and aggregate type, if the kind has no code for
-- them. The planner must write this function and the next one into `outbox.read`: a call for each event would cost more
-- than all the rest.
create or replace function outbox.fields(
  pos bigint, id bigint, kind smallint, created_at timestamptz, aggregate_id text, version smallint, mark text,
  type text, aggregate_type text, key text, headers json) returns text
language sql stable parallel safe
return case when version = 1 and mark is null and kind <> 0 and key is null and headers is null
  then concat_ws(E'\x1f', pos, id, kind, (date_part('epoch', created_at) * 1000)::bigint, aggregate_id)
  else concat_ws(E'\x1f', '+' || pos, id, kind, coalesce(((date_part('epoch', created_at) * 1000)::bigint)::text, ''),
    coalesce(aggregate_id, ''), coalesce(version::text, ''), coalesce(mark, ''),
    case when kind = 0 then coalesce(translate(type || ' ' || aggregate_type, E'\x1e\x1f', ''), '') else '' end,
    coalesce(key, ''), case when mark is distinct from 'blocked' then coalesce(headers::text, '') else '' end) end;

create or replace function outbox.payload_text(mark text, payload json) returns text
language sql stable parallel safe
return case when mark is distinct from 'blocked' then coalesce(payload::text, '') else '' end;
