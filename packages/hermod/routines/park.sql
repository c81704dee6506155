-- park: a destination took the call as a task; the next owner of the lane asks for it instead of sending again.

-- Records the handle of a task with the lanes of its call. Returns the lanes it was recorded for.
create or replace function outbox.park(sub text, who text, handle text, lanes json) returns setof smallint
language sql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  -- In order of lane, as by settle: two orders could deadlock.
  select from outbox.lane l where l.subscription = sub
     and l.lane in (select b.lane from json_to_recordset(park.lanes) as b(lane smallint))
   order by l.lane for update;
  update outbox.lane l set parked = jsonb_build_object('handle', park.handle, 'fence', c.fence::text, 'from',
                                                       b."from"::text, 'to', b."to"::text,
           'delivered', b.delivered, 'superseded', b.superseded, 'since', outbox.clock())
    from json_to_recordset(park.lanes) as b(lane smallint, fence bigint, "from" bigint, "to" bigint, delivered integer,
                                            superseded integer)
   cross join lateral outbox.cursor_of(sub, b.lane) c
   where l.subscription = sub and l.lane = b.lane and l.fence = b.fence and l.owner = who and c.pos = b."from"
  returning l.lane
$$;

-- What is parked in a lane. Valid only while the cursor is the one the call began at: it has neither moved on, nor
-- moved and been put back.
create or replace function outbox.parked_in(sub text, of_lane smallint)
returns table (handle text, "from" bigint, "to" bigint,
  delivered integer, superseded integer, since timestamptz)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select p.handle, p."from", p."to", p.delivered, p.superseded, p.since
    from outbox.lane l
   cross join lateral jsonb_to_record(l.parked) as p(handle text, fence bigint, "from" bigint, "to" bigint,
                                                     delivered integer, superseded integer, since timestamptz)
   cross join lateral outbox.cursor_of(sub, of_lane) c
   where l.subscription = sub and l.lane = of_lane and l.parked is not null
     and c.pos = p."from" and c.fence = p.fence
$$;
