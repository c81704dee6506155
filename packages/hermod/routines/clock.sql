-- The clock. Defaults of tables name it too, so the first migration creates it as well.

-- Time in SQL is read through this function, so that tests can replace it.
create or replace function outbox.clock() returns timestamptz language sql volatile parallel safe
return clock_timestamp();

-- Is it over? So too if it lies further in the future than any lease or pause of a breaker can (an hour): then the
-- clock was ahead when it was written, and has been put right since.
create or replace function outbox.is_over(until timestamptz, now timestamptz) returns boolean
language sql stable parallel safe
return until <= now or until > now + interval '61 minutes';

-- A retry that is due later than this was written under a clock that was ahead: the longest delay is two days.
create or replace function outbox.last_due(now timestamptz) returns timestamptz
language sql stable parallel safe
return now + interval '49 hours';
