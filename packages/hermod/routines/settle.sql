-- settle: appends the cursor and writes a row only for events that need attention. All of it, or nothing.

-- A row for another event of the same aggregate, to be sent now. Nothing happens if that event has a row.
create or replace function outbox.send_next(d outbox.delivery, at_pos bigint, of_event bigint) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state,
                               attempts_max, next_attempt_at, updated_at)
  values ((d).subscription, (d).lane, at_pos, of_event, (d).aggregate_type, (d).aggregate_id, (d).hash, 'retrying',
          (d).attempts_max, outbox.clock(), outbox.clock())
  on conflict on constraint delivery_pkey do nothing
$$;

-- The event of a row is done: the row moves on to the next event that it blocked, or is deleted. A later event may have
-- a row of its own (a dead letter, or a retry from before the subscription was ordered): a dead one that blocks nothing
-- is skipped; for any other, the events after it wait for that row.
-- `reach`: where the followers of many rows are, found in one pass.
create or replace function outbox.walk_on(d outbox.delivery, reach jsonb, keep_row boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  at    outbox.delivery := d;
  up_to bigint := coalesce((reach -> d.hash::text ->> 1)::bigint,
                           (select c.pos from outbox.cursor_of(d.subscription, d.lane) c));
  met   text;
  next  record;
begin
  at.pos := greatest(d.pos, (reach -> d.hash::text ->> 0)::bigint);
  loop
    select * into next from outbox.follower(at, up_to);
    select x.state into met from outbox.delivery x where x.subscription = d.subscription and x.lane = d.lane
      and x.pos = next.pos;
    exit when met is distinct from 'dead' or (select s.dead_holds from outbox.subscription s
                                              where s.name = d.subscription);
    at.pos := next.pos;
  end loop;
  if not keep_row then
    delete from outbox.delivery x where x.subscription = d.subscription and x.lane = d.lane and x.pos = d.pos;
  end if;
  if next.pos is not null and met is null then
    perform outbox.send_next(d, next.pos, next.event_id);
  end if;
end $$;

create or replace function outbox.walk_on(d outbox.delivery, up_to bigint, keep_row boolean) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  select outbox.walk_on(d, jsonb_build_object((d).hash, jsonb_build_array((d).pos, up_to)), keep_row)
$$;

-- The same if only the newest state counts.
create or replace function outbox.walk_to_newest(d outbox.delivery, reach jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  at    outbox.delivery := d;
  after bigint := greatest(d.pos, (reach -> d.hash::text ->> 0)::bigint);
  up_to bigint := coalesce((reach -> d.hash::text ->> 1)::bigint,
                           (select c.pos from outbox.cursor_of(d.subscription, d.lane) c));
  last  record;
begin
  at.pos := up_to - 1;
  select * into last from outbox.follower(at, up_to);
  if after < up_to and last.pos > d.pos then
    perform outbox.send_next(d, last.pos, last.event_id);
  elsif after < up_to then
    perform outbox.walk_to_newest(d, up_to);
  end if;
end $$;

create or replace function outbox.walk_to_newest(d outbox.delivery, up_to bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  at   outbox.delivery := d;
  next record;
begin
  loop
    select * into next from outbox.follower(at, up_to);
    exit when next.pos is null;
    at.pos := next.pos;
    at.event_id := next.event_id;
  end loop;
  if at.pos > d.pos then
    perform outbox.send_next(d, at.pos, at.event_id);
  end if;
end $$;

-- An event was delivered that had a row, or whose aggregate has one.
create or replace function outbox.settle_done(
  s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text, reach jsonb)
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  d outbox.delivery;
begin
  select * into d from outbox.delivery x where x.subscription = s.name and x.lane = of_lane and x.pos = of_pos;
  if s.coalesced then
    -- The newest state was delivered: nothing older of this aggregate needs attention any more.
    delete from outbox.delivery x where x.subscription = s.name and x.lane = of_lane
      and x.hash = outbox.hash(of_type, of_id) and x.pos <= of_pos
       and x.aggregate_type = of_type and x.aggregate_id = of_id and x.state in ('retrying', 'dead');
    -- A newer one is below the cursor only if a dead letter blocked it, or if the subscription did not coalesce then.
    if d.pos is not null then
      perform outbox.walk_to_newest(d, reach);
    end if;
  elsif d.pos is not null and s.ordered then
    perform outbox.walk_on(d, reach, false);
  elsif d.pos is not null then
    delete from outbox.delivery x where x.subscription = s.name and x.lane = of_lane and x.pos = of_pos;
  end if;
end $$;

-- An event was not sent because it was blocked. If the row that blocked it is gone by now, it gets its own.
create or replace function outbox.settle_blocked(s outbox.subscription, of_lane smallint, r record) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  open outbox.delivery;
begin
  select * into open from outbox.delivery d
   where d.subscription = s.name and d.lane = of_lane and d.hash = outbox.hash(r.aggregate_type, r.aggregate_id)
     and d.aggregate_type = r.aggregate_type
     and d.aggregate_id = r.aggregate_id and (d.state = 'retrying' or (s.dead_holds and d.state = 'dead'))
   order by d.pos limit 1;
  if open.pos is null then
    open.subscription := s.name;
    open.lane := of_lane;
    open.aggregate_type := r.aggregate_type;
    open.aggregate_id := r.aggregate_id;
    open.hash := outbox.hash(r.aggregate_type, r.aggregate_id);
    open.attempts_max := r.attempts_max;
    perform outbox.send_next(open, r.pos, r.event_id);
  elsif s.coalesced and open.state = 'retrying' and open.pos < r.pos then
    -- The newer event takes over; attempts and due time stay.
    update outbox.delivery d set pos = r.pos, event_id = r.event_id, event = null, correction = null
     where d.subscription = s.name and d.lane = of_lane and d.pos = open.pos;
  end if;
end $$;

-- A delivery that needs attention, or one of a ledger.
create or replace function outbox.settle_row(
  s outbox.subscription, of_lane smallint, r record, reach jsonb, now timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  old   outbox.delivery;
  other outbox.delivery;
  due   timestamptz := case when r.state in ('retrying', 'pending')
    then now + r.after_ms * interval '1 millisecond' end;
begin
  if s.coalesced and r.state = 'retrying' then
    -- An aggregate has one row, that of its newest event. This event was read before the row moved, or sent beside it,
    -- and comes late.
    select * into other from outbox.delivery d
     where d.subscription = s.name and d.lane = of_lane and d.hash = outbox.hash(r.aggregate_type, r.aggregate_id)
       and d.pos <> r.pos
       and d.aggregate_type = r.aggregate_type and d.aggregate_id = r.aggregate_id and d.state = 'retrying'
         order by d.pos desc limit 1;
    if other.pos > r.pos then
      delete from outbox.delivery d where d.subscription = s.name and d.lane = of_lane and d.pos = r.pos;
      update outbox.delivery d set attempts = greatest(d.attempts, r.attempts),
        next_attempt_at = greatest(d.next_attempt_at, due),
             first_failed_at = coalesce(d.first_failed_at, now), updated_at = now, code = r.code, error = r.error,
               fingerprint = r.fingerprint
       where d.subscription = s.name and d.lane = of_lane and d.pos = other.pos;
      return;
    elsif other.pos < r.pos then
      delete from outbox.delivery d where d.subscription = s.name and d.lane = of_lane and d.pos = other.pos;
    end if;
  end if;
  select * into old from outbox.delivery d where d.subscription = s.name and d.lane = of_lane and d.pos = r.pos;
  -- An operator has decided about this message while its call was under way: the decision stands.
  if s.ledger and old.state not in ('pending', 'retrying', 'sending') then
    return;
  end if;
  insert into outbox.delivery as d (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state,
                                    attempts,
      attempts_max, next_attempt_at, first_failed_at, updated_at, code, error, fingerprint, receipt)
  values (s.name, of_lane, r.pos, r.event_id, r.aggregate_type, r.aggregate_id,
          outbox.hash(r.aggregate_type, r.aggregate_id), r.state, greatest(r.attempts, other.attempts),
      r.attempts_max, due, case when r.state <> 'delivered' then now end, now, r.code, r.error, r.fingerprint,
        r.receipt)
  on conflict (subscription, lane, pos) do update set state = excluded.state, attempts = excluded.attempts,
      next_attempt_at = excluded.next_attempt_at,
      first_failed_at = coalesce(d.first_failed_at, excluded.first_failed_at),
      updated_at = now, code = excluded.code, error = excluded.error, fingerprint = excluded.fingerprint,
      receipt = coalesce(excluded.receipt, d.receipt);
  if r.state = 'dead' and old.state = 'retrying' and s.ordered and not s.coalesced and not s.dead_holds
     and not s.ledger then
    perform outbox.walk_on(old, reach, true);
  end if;
end $$;

-- Where the rows that this settles may walk on to: those that are done, and those that become dead.
create or replace function outbox.settle_reach(s outbox.subscription, of_lane smallint, done json, rows json)
returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  positions bigint[] := array(
    select d.pos from json_to_recordset(done) as d(pos bigint)
    union all
    select r.pos from json_to_recordset(rows) as r(pos bigint, state text) where r.state = 'dead' and not s.ledger);
begin
  return case when cardinality(positions) > 0
    then outbox.reach(s, array_fill(of_lane, array[cardinality(positions)]), positions) end;
end $$;

-- What a batch means for the rows of a lane.
create or replace function outbox.settle_rows(
  s outbox.subscription, of_lane smallint, now timestamptz, done json, rows json, blocked json)
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  r     record;
  reach jsonb := outbox.settle_reach(s, of_lane, done, rows);
begin
  -- In order: settling one event makes the row of the next one, which may be in the list too.
  for r in select * from json_to_recordset(done) as d(pos bigint, aggregate_type text, aggregate_id text) loop
    perform outbox.settle_done(s, of_lane, r.pos, r.aggregate_type, r.aggregate_id, reach);
  end loop;
  for r in select * from json_to_recordset(rows) as d(
             pos bigint, event_id bigint, aggregate_type text, aggregate_id text, state text, attempts integer,
             attempts_max integer, after_ms integer, code text, error text, fingerprint text, receipt json) loop
    perform outbox.settle_row(s, of_lane, r, reach, now);
  end loop;
  for r in select * from json_to_recordset(blocked) as d(
             pos bigint, event_id bigint, aggregate_type text, aggregate_id text, attempts_max integer) loop
    perform outbox.settle_blocked(s, of_lane, r);
  end loop;
end $$;

-- One row for the call, one for each event that did not succeed.
create or replace function outbox.record_attempt(
  sub text, of_lane smallint, from_pos bigint, to_pos bigint, number bigint, call json,
  delivered integer, superseded integer, failed integer, rows json, dry_run boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into outbox.attempt (call, subscription, lane, from_pos, to_pos, started_at, duration_ms, worker, outcome,
                              delivered, superseded, failed, dry_run, code, error)
  values (number, sub, of_lane, from_pos, to_pos,
          outbox.clock() - (call ->> 'ago_ms')::integer * interval '1 millisecond', (call ->> 'duration_ms')::integer,
    call ->> 'worker', call ->> 'outcome', delivered, superseded, failed, dry_run, call ->> 'code', call ->> 'error');
  if failed > 0 then
    insert into outbox.attempt (call, subscription, lane, from_pos, to_pos, pos, started_at, duration_ms, worker,
                                outcome, failed, dry_run, code, error)
    select number, sub, of_lane, from_pos, to_pos, r.pos,
           outbox.clock() - (call ->> 'ago_ms')::integer * interval '1 millisecond',
           (call ->> 'duration_ms')::integer, call ->> 'worker', r.outcome, 1, dry_run, r.code, r.error
      from json_to_recordset(rows) as r(pos bigint, outcome text, code text, error text)
     where r.outcome is not null;
  end if;
end $$;

-- A dry run moves its own cursor and records what it would have done.
create or replace function outbox.settle_shadow(sub text, who text, batch json) returns setof smallint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  x      record;
  number bigint := nextval('outbox.attempt_id');
begin
  for x in
    select b.*, d.fence as shadow_fence, d.pos as shadow_pos
      from json_to_recordset(batch -> 'settlements') as b(
             lane smallint, fence bigint, "from" bigint, "to" bigint, sent integer,
             delivered integer, superseded integer, failed integer, rows json)
      join outbox.lane l on l.subscription = sub and l.lane = b.lane and l.owner = who and l.fence = b.fence
      left join lateral outbox.shadow_of(sub, b.lane) d on true
     cross join lateral outbox.cursor_of(sub, b.lane) c
     where coalesce(d.pos, c.pos) = b."from" and b."to" > b."from"
  loop
    insert into outbox.shadow (subscription, lane, fence, pos, delivered)
      values (sub, x.lane, x.fence, x."to", x.delivered);
    delete from outbox.shadow d where d.subscription = sub and d.lane = x.lane and d.fence = x.shadow_fence
      and d.pos = x.shadow_pos;
    if x.sent > 0 then
      perform outbox.record_attempt(sub, x.lane, x."from", x."to", number, batch -> 'call', x.delivered, x.superseded,
                                    x.failed, x.rows, true);
    end if;
    return next x.lane;
  end loop;
end $$;

-- A definition made at run time was changed while this batch was out. What was read before the change counts if it
-- simply passed: the new definition begins where the log ended then. A ledger's rows say for themselves what they are.
create or replace function outbox.settles_late(
  s outbox.subscription, rev integer, given outbox.settlement[]) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select (s).kind is not null and (s).revision = rev + 1 and (s).mode = 'live' and not exists (
    select from unnest(given) b
     where b."to" > (select max(f.from_pos) from outbox.filter f where f.subscription = (s).name)
        or not (s).ledger and (b.failed > 0 or coalesce(b.rows, b.blocked, b.done) is not null))
$$;

-- Returns the lanes that were settled. A lane missing from the answer is no longer leased by this worker, or its cursor
-- is not where the batch began: its result is dropped and its owner delivers again. To be called as a statement of its
-- own: between BEGIN and COMMIT a client that stands still would keep the locks of its lanes.
create or replace function outbox.settle(sub text, rev integer, who text, batch json) returns setof smallint
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s       outbox.subscription;
  x       record;
  now     timestamptz := outbox.clock();
  call    json := batch -> 'call';
  number  bigint := nextval('outbox.attempt_id');
  given   outbox.settlement[] := array(
    select b from json_populate_recordset(null::outbox.settlement, batch -> 'settlements') b);
  settled smallint[];
  special json[];
begin
  -- Lock first, then look, in separate statements.
  perform from outbox.lane l where l.subscription = sub and l.lane = any (array(select b.lane from unnest(given) b))
    order by l.lane for update;
  select * into s from outbox.subscription where name = sub;
  -- A batch of a dry run must never move the live cursor, nor a live batch the cursor of a dry run.
  if s.name is null or (s.mode = 'dry-run') <> coalesce((batch ->> 'rehearsed')::boolean, false)
     or s.revision > rev and not outbox.settles_late(s, rev, given) then
    return;
  end if;
  if s.mode = 'dry-run' then
    return query select * from outbox.settle_shadow(sub, who, batch);
    return;
  end if;
  -- All lanes in one statement: a statement costs more than a lane.
  with mine as materialized (
    select b.*, c.fence as cursor_fence, c.pos as cursor_pos, c.delivered as before,
           b."to" > b."from" and not s.ledger as moves
      from unnest(given) b
      join outbox.lane l on l.subscription = sub and l.lane = b.lane and l.owner = who and l.fence = b.fence
     cross join lateral (select n.fence, n.pos, n.delivered from outbox.cursor n
                          where n.subscription = sub and n.lane = b.lane order by n.fence desc, n.pos desc limit 1) c
     -- A ledger's cursor was moved when its rows were written.
     where c.pos = b."from" or s.ledger
  ), moved as (
    insert into outbox.cursor (subscription, lane, fence, pos, delivered)
    select sub, m.lane, m.fence, m."to", m.before + m.delivered + m.superseded from mine m where m.moves
  ), gone as (
    delete from outbox.cursor c using mine m
     where m.moves and c.subscription = sub and c.lane = m.lane and c.fence = m.cursor_fence and c.pos = m."from"
  ), told as (
    insert into outbox.attempt (call, subscription, lane, from_pos, to_pos, started_at, duration_ms, worker, outcome,
                                delivered, superseded, failed, code, error)
    select number, sub, m.lane, m."from", m."to",
           outbox.clock() - (call ->> 'ago_ms')::integer * interval '1 millisecond', (call ->> 'duration_ms')::integer,
           call ->> 'worker', call ->> 'outcome', m.delivered, m.superseded, m.failed, call ->> 'code', call ->> 'error'
      from mine m where m.sent > 0 and m.failed = 0
  )
  select array_agg(m.lane), array_agg(to_json(m)) filter (
           where coalesce(m.rows, m.blocked, m.done) is not null or m.failed > 0 or (not m.moves and m.delivered > 0))
    into settled, special from mine m;
  for x in
    select m.* from unnest(special) as u(lane) cross join lateral json_to_record(u.lane) as m(
      lane smallint, cursor_fence bigint, cursor_pos bigint, "from" bigint, "to" bigint, moves boolean,
      sent integer, delivered integer, superseded integer, failed integer, rows json, blocked json, done json)
  loop
    if not x.moves and x.delivered > 0 then
      update outbox.cursor c set delivered = c.delivered + x.delivered
       where c.subscription = sub and c.lane = x.lane and c.fence = x.cursor_fence and c.pos = x.cursor_pos;
    end if;
    perform outbox.settle_rows(s, x.lane, now, x.done, x.rows, x.blocked);
    if x.sent > 0 and x.failed > 0 then
      perform outbox.record_attempt(sub, x.lane, x."from", x."to", number, call, x.delivered, x.superseded, x.failed,
                                    x.rows, false);
    end if;
  end loop;
  return query select unnest(settled);
end $$;
