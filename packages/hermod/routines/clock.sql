-- The clock. Defaults of tables name it too, so the first migration creates it as well.

-- Time in SQL is read through this function, so that tests can replace it.
create or replace function outbox.clock() returns timestamptz language sql volatile parallel safe
return clock_timestamp();
