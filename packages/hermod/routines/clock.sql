-- What everything else rests on: the clock, how a routine refuses, and the list of advisory locks. Defaults of tables
-- name the clock too, so the first migration creates it as well.
--
-- Advisory locks belong to a database, whoever takes them: each purpose has a number of its own, here.
--   4841297200          migrations, routines and grants           src/migrate.ts, grants.sql
--   4841297201          numbering; whoever adds leaves of the log sequence.sql, upkeep.sql, rebase.sql
--   4841297202          installing the PostgreSQL search engine   src/sinks/search/postgres/schema.ts; its generations:
--                       a hash with this number as its seed       src/sinks/search/postgres/generations.ts
--   4841297203          migrations of the server                  packages/server/src/migrate.ts
--   1212370244, hash    an aggregate, by outbox.lock              emit.sql
--   1212370245, hash    a subscription's definition               subscribe.sql, define.sql
--   1212370246, hash    a piece of upkeep                         upkeep.sql, prune.sql
--   1212370247, hash    a leaf that upkeep works on               upkeep.sql
--   1212370248, oid     a watched table                           watch.sql
--   1212370249, hash    a request of an operator                  src/desk/audit.ts

-- Time in SQL is read through this function, so that tests can replace it.
create or replace function outbox.clock() returns timestamptz language sql volatile parallel safe
return clock_timestamp();

-- Ends the statement with one of our errors: a code of PostgreSQL's form, the sentence, and what to do.
create or replace function outbox.refuse(code text, says text, advice text default null) returns void
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  if advice is null then
    raise exception using errcode = code, message = says;
  end if;
  raise exception using errcode = code, message = says, hint = advice;
end $$;

-- Is it over? So too if it lies further in the future than any lease or pause of a breaker can (an hour): then the
-- clock was ahead when it was written, and has been put right since.
create or replace function outbox.is_over(until timestamptz, now timestamptz) returns boolean
language sql stable parallel safe
return until <= now or until > now + interval '61 minutes';

-- A retry that is due later than this was written under a clock that was ahead: the longest delay is two days.
create or replace function outbox.last_due(now timestamptz) returns timestamptz
language sql stable parallel safe
return now + interval '49 hours';
