-- Kinds: a small code for each pair of event type and aggregate type, and which of them a filter matches.

-- The code of a pair (type, aggregate type), assigned when the pair is first seen. After 32,767 pairs it is 0, and
-- filters look at the event itself.
create or replace function outbox.kind_code(of_type text, of_aggregate_type text) returns smallint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found smallint;
begin
  select k.code into found from outbox.kind k where k.type = of_type and k.aggregate_type = of_aggregate_type;
  if found is null then
    insert into outbox.kind (code, type, aggregate_type)
    select case when coalesce(max(k.code), 0) < 32767 then coalesce(max(k.code), 0) + 1
           else 0 end, of_type, of_aggregate_type from outbox.kind k
    returning code into found;
  end if;
  return found;
end $$;

-- Does a pattern list (`document.updated`, `document.*`, `*`) match a type?
create or replace function outbox.matches(patterns text[], type text) returns boolean
language sql immutable parallel safe
return exists (select from unnest(patterns) p
  where p = '*' or p = type or (right(p, 2) = '.*' and starts_with(type, left(p, -1))));

-- The kinds a filter matches; null = all of them.
create or replace function outbox.kinds(types text[], aggregates text[]) returns smallint[]
language sql stable
return case when '*' = any (types) and aggregates is null then null else
  array(select distinct k.code from outbox.kind k
         where k.code = 0 or (outbox.matches(types, k.type) and (aggregates is null
                                                                 or k.aggregate_type = any (aggregates)))) end;

-- Does a subscription listen to this event? A filter is valid from the position where it was installed.
create or replace function outbox.heard(sub text, at_pos bigint, of_type text, of_aggregate_type text) returns boolean
language sql stable
return exists (
  select from (select f.types, f.aggregates from outbox.filter f
                where f.subscription = sub and f.from_pos < at_pos order by f.from_pos desc limit 1) f
   where outbox.matches(f.types, of_type) and (f.aggregates is null or of_aggregate_type = any (f.aggregates)));
