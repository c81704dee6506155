-- Where a lane stands: its newest cursor, live or of a dry run.

-- The newest cursor of a lane; `shadow_of`: the one of a dry run.
create or replace function outbox.cursor_of(
  sub text, lane smallint, out fence bigint, out pos bigint, out delivered bigint)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select c.fence, c.pos, c.delivered from outbox.cursor c
   where c.subscription = sub and c.lane = cursor_of.lane order by c.fence desc, c.pos desc limit 1
$$;

create or replace function outbox.shadow_of(
  sub text, lane smallint, out fence bigint, out pos bigint, out delivered bigint)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select c.fence, c.pos, c.delivered from outbox.shadow c
   where c.subscription = sub and c.lane = shadow_of.lane order by c.fence desc, c.pos desc limit 1
$$;

-- Where a lane stands for its owner: a dry run has a cursor of its own. The planner writes this function into its
-- callers (read.sql says what that needs).
create or replace function outbox.stands_at(sub text, mode text, lane smallint) returns table (pos bigint)
language sql stable
begin atomic
  select coalesce((select d.pos from outbox.shadow_of(sub, lane) d where mode = 'dry-run'),
                  (select c.pos from outbox.cursor_of(sub, lane) c));
end;
