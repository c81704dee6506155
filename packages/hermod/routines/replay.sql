-- replay: a second, lower cursor on the same lanes. The owner of a lane sends again what lies between it and the live
-- cursor, between live batches. The replay of a lane ends when the two meet. Without a replay nothing here is read.

-- The replay that may send now: neither queued nor paused. Null: none. The CASE and the conditions before it are those
-- of the index `journey_one`, word for word: else the planner cannot use it.
create or replace function outbox.replay_of(sub text) returns bigint
language sql stable set search_path = pg_catalog, pg_temp
set enable_seqscan = off as $$
  select j.id from outbox.journey j
   where j.kind <> 'verify' and j.started_at is not null and j.ended_at is null
     and (case j.kind when 'backfill' then 'rebuild' else j.kind end) = 'replay' and j.subject = sub
     and j.state = 'running' and j.asked = 'run'
$$;

-- The lanes of the log behind a lane of a subscription; for one document, its lane.
create or replace function outbox.log_lanes(s outbox.subscription, of_lane smallint, doc_hash integer)
returns smallint[]
language sql stable
begin atomic
  select case when doc_hash is not null then array[outbox.lane_of(doc_hash, t.lanes)::smallint]
              when (s).lanes = 1 then array(select generate_series(0, t.lanes - 1)::smallint) else array[of_lane] end
    from outbox.setting t;
end;

-- What a subscription listened to at which positions.
create or replace function outbox.listened(sub text, after bigint, up_to bigint)
returns table (from_pos bigint, until bigint, types text[], aggregates text[], kinds smallint[])
language sql stable
begin atomic
  select * from (select f.from_pos, coalesce(lead(f.from_pos) over (order by f.from_pos), 9223372036854775806) as until,
                        f.types, f.aggregates, outbox.kinds(f.types, f.aggregates) as kinds
                   from outbox.filter f where f.subscription = sub) f
   where f.until > after and f.from_pos < up_to order by f.from_pos;
end;

-- The last event of each of these hashes in (after, up_to] that the subscription listened to.
create or replace function outbox.newest(sub text, lanes smallint[], after bigint, up_to bigint, hashes integer[])
returns table (hash integer, pos bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  f       record;
  at_lane smallint;
begin
  for f in select * from outbox.listened(sub, after, up_to) loop
    foreach at_lane in array lanes loop
      return query
        select g.hash, max(g.pos) from outbox.log g
         where g.lane = at_lane and g.pos > greatest(after, f.from_pos) and g.pos <= least(up_to, f.until)
           and (f.kinds is null or g.kind = any (f.kinds)) and g.hash in (select unnest(hashes))
         group by g.hash;
    end loop;
  end loop;
end $$;

-- Of these events, those without a later event of their aggregate in (after, up_to]. For most of them the hash is
-- enough; if another aggregate has the same hash, the events themselves are compared.
create or replace function outbox.sieve(
  sub text, lanes smallint[], positions bigint[], ids bigint[], hashes integer[], after bigint, up_to bigint)
returns bigint[]
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_nestloop = off
set enable_mergejoin = off set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  kept   bigint[];
  doubts record;
begin
  select array_agg(w.pos) filter (where n.pos is null or n.pos <= w.pos) as kept,
         array_agg(w.pos) filter (where n.pos > w.pos) as pos,
         array_agg(w.id) filter (where n.pos > w.pos) as id, array_agg(w.hash) filter (where n.pos > w.pos) as hash,
         array_agg(n.pos) filter (where n.pos > w.pos) as later into doubts
    from unnest(positions, ids, hashes) as w(pos, id, hash)
    left join (select m.hash, max(m.pos) as pos from outbox.newest(sub, lanes, after, up_to, hashes) m
               group by m.hash) n on n.hash = w.hash;
  kept := coalesce(doubts.kept, '{}');
  if doubts.pos is not null then
    kept := kept || outbox.not_superseded(sub, doubts.pos, doubts.id, doubts.hash, doubts.later, up_to);
  end if;
  return array(select p from unnest(kept) p order by p);
end $$;

-- Of events with a later one of the same hash, those whose aggregate has none. The later one is nearly always of the
-- same aggregate; only if it is not, the log is read.
create or replace function outbox.not_superseded(
  sub text, positions bigint[], ids bigint[], hashes integer[], later bigint[], up_to bigint) returns bigint[]
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_nestloop = on set enable_hashjoin = off
set enable_mergejoin = off set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  strange record;
  lanes   smallint := (select t.lanes from outbox.setting t);
begin
  select array_agg(w.pos) as pos, array_agg(w.id) as id, array_agg(w.hash) as hash into strange
    from unnest(positions, ids, hashes, later) as w(pos, id, hash, later)
    join outbox.event e on e.id = w.id
    join outbox.log g on g.lane = outbox.lane_of(w.hash, lanes) and g.pos = w.later
    join outbox.event x on x.id = g.event_id
   where x.aggregate_type <> e.aggregate_type or x.aggregate_id <> e.aggregate_id or g.kind = 0;
  if strange.pos is null then
    return '{}';
  end if;
  return array(
    select w.pos from unnest(strange.pos, strange.id, strange.hash) as w(pos, id, hash)
      join outbox.event e on e.id = w.id
     where not exists (
       select from outbox.log g join outbox.event x on x.id = g.event_id
        where g.lane = outbox.lane_of(w.hash, lanes) and g.pos > w.pos and g.pos <= up_to and g.hash = w.hash
          and x.aggregate_type = e.aggregate_type and x.aggregate_id = e.aggregate_id
          and exists (select from outbox.listened(sub, g.pos - 1, g.pos) f
                       where outbox.matches(f.types, x.type)
                         and (f.aggregates is null or x.aggregate_type = any (f.aggregates)))));
end $$;

-- What the rows of an aggregate mean for an event that is sent again. 'due n': the replay takes its row over, or that
-- of an older event; 'blocked': by a row that will reach it later.
create or replace function outbox.replay_mark(
  s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text) returns text
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
  select case when bool_or(d.pos = of_pos)
              then 'due ' || coalesce(max(d.attempts) filter (where d.pos = of_pos and d.state = 'retrying'), 0)
              when (s).coalesced and bool_or(d.pos < of_pos) then 'due 0'
              when (s).ordered
                and bool_or(d.pos < of_pos and (d.state = 'retrying' or d.state = 'dead' and (s).dead_holds))
              then 'blocked' end
    from outbox.delivery d
   where d.subscription = (s).name and d.lane = of_lane and d.hash = outbox.hash(of_type, of_id)
     and d.state in ('retrying', 'dead', 'unknown')
     and d.aggregate_type = of_type and d.aggregate_id = of_id
$$;

create or replace function outbox.picked(positions bigint[], ids bigint[], hashes integer[], kept bigint[])
returns table (pos bigint, id bigint, hash integer)
language sql stable set search_path = pg_catalog, pg_temp
set enable_hashjoin = on set enable_nestloop = off set enable_mergejoin = off as $$
  select w.pos, w.id, w.hash from unnest(positions, ids, hashes) as w(pos, id, hash)
    where w.pos in (select unnest(kept))
$$;

-- What a replay has to send next in one lane: at most `rows_max` rows of the log are looked at, up to `through`.
-- `matching` counts what its filter matches; with coalescing only the newest event of an aggregate is in `positions`.
create or replace function outbox.replay_window(
  sub text, of_lane smallint, plan jsonb, after bigint, up_to bigint, rows_max integer, out through bigint,
  out matching integer, out positions bigint[], out ids bigint[], out hashes integer[])
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s        outbox.subscription;
  f        record;
  doc_type text     := plan -> 'aggregate' ->> 0;
  doc_id   text     := plan -> 'aggregate' ->> 1;
  doc_hash integer  := case when doc_id is not null then outbox.hash(doc_type, doc_id) end;
  types    text[]   := coalesce((select array_agg(t) from jsonb_array_elements_text(plan -> 'types') t), '{*}');
  kinds_of text[]   := (select array_agg(t) from jsonb_array_elements_text(plan -> 'aggregates') t);
  kinds    smallint[];
  lanes    smallint[];
  stop     bigint;
  last     bigint;
  kept     bigint[];
  given_up boolean;
begin
  select * into s from outbox.subscription where name = sub;
  positions := '{}';
  ids := '{}';
  hashes := '{}';
  matching := 0;
  lanes := outbox.log_lanes(s, of_lane, doc_hash);
  stop := least(up_to, coalesce((plan ->> 'to')::bigint, up_to));
  select * into f from outbox.listened(sub, after, greatest(stop, after + 1)) limit 1;
  if f.from_pos is null or after >= stop or (s.lanes > 1 and not of_lane = any (lanes)) then
    through := up_to;
    return;
  end if;
  kinds := outbox.kinds(types, kinds_of);
  given_up := exists (select from outbox.delivery d where d.subscription = sub and d.state = 'discarded');
  select max(g.pos), array_agg(g.pos order by g.pos) filter (where g.hit),
         array_agg(g.event_id order by g.pos) filter (where g.hit),
         array_agg(g.hash order by g.pos) filter (where g.hit) into last, positions, ids, hashes
    from (select g.pos, g.event_id, g.hash,
                 (f.kinds is null or g.kind = any (f.kinds)) and (kinds is null or g.kind = any (kinds))
                   and (doc_hash is null or g.hash = doc_hash)
                 and (g.kind <> 0 and doc_hash is null or exists (select from outbox.event e where e.id = g.event_id
                        and (doc_id is null or e.aggregate_type = doc_type and e.aggregate_id = doc_id)
                        and outbox.matches(types, e.type) and (kinds_of is null or e.aggregate_type = any (kinds_of))
                        and outbox.matches(f.types, e.type)
                        and (f.aggregates is null or e.aggregate_type = any (f.aggregates))))
                 and not (given_up and exists (select from outbox.delivery d
                        where d.subscription = sub and d.lane = of_lane and d.pos = g.pos
                          and d.state = 'discarded')) as hit
            from outbox.scan(cardinality(lanes) > 1, lanes[1], after, least(stop, f.until), rows_max) g offset 0) g;
  through := coalesce(last, case when f.until < stop then f.until else up_to end);
  matching := coalesce(cardinality(positions), 0);
  if s.coalesced and not s.ledger and matching > 0 then
    kept := outbox.sieve(sub, lanes, positions, ids, hashes, positions[1], up_to);
    select array_agg(w.pos order by w.pos), array_agg(w.id order by w.pos), array_agg(w.hash order by w.pos)
      into positions, ids, hashes
      from outbox.picked(positions, ids, hashes, kept) w;
  end if;
end $$;

-- The events of some of these positions, packed as in `outbox.read`. Events that became obsolete since the window was
-- read (up to `sieved`) are left out. No row: the lane is not leased, or the subscription does not send now.
create or replace function outbox.replay_read(
  sub text, rev integer, who text, of_lane smallint, of_fence bigint, positions bigint[], ids bigint[],
  hashes integer[], sieved bigint, bytes_max bigint)
returns table (lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s     outbox.subscription;
  up_to bigint;
  open  boolean;
begin
  select * into s from outbox.subscription where name = sub;
  select c.pos into up_to from outbox.lane l cross join lateral outbox.cursor_of(sub, of_lane) c
   where l.subscription = sub and l.lane = of_lane and l.owner = who and l.fence = of_fence;
  if up_to is null or s.revision > rev or s.mode <> 'live' then
    return;
  end if;
  -- Few events came since, and rarely of these documents.
  if s.coalesced and up_to > sieved and hashes && array(select g.hash from unnest(outbox.log_lanes(s, of_lane, null)) i
       cross join lateral (select g.hash from outbox.log g where g.lane = i and g.pos > sieved and g.pos <= up_to) g)
         then
    select array_agg(w.pos order by w.pos), array_agg(w.id order by w.pos) into positions, ids
      from outbox.picked(positions, ids, hashes,
             outbox.sieve(sub, outbox.log_lanes(s, of_lane, null), positions, ids, hashes, sieved, up_to)) w;
  end if;
  open := exists (select from outbox.delivery d where d.subscription = sub and d.lane = of_lane
                  and d.state in ('retrying', 'dead', 'unknown'));
  lane := of_lane;
  due := false;
  select max(z.pos), string_agg(outbox.fields(z.pos, z.event_id, 0::smallint, z.created_at, z.aggregate_id, z.version,
           z.mark, z.type, z.aggregate_type, z.key, z.headers), E'\x1e' order by z.pos),
         string_agg(outbox.payload_text(z.mark, z.payload), E'\x1e' order by z.pos), 0
    into through, fields, payloads, kind_max
    from (select w.pos, e.id as event_id, e.version, e.created_at, e.type, e.aggregate_type, e.aggregate_id, e.key,
                 coalesce(d.correction -> 'headers', e.headers) as headers,
                   coalesce(d.correction -> 'payload', e.payload) as payload,
                 case when open then outbox.replay_mark(s, of_lane, w.pos, e.aggregate_type, e.aggregate_id) end
                   as mark,
                 sum(e.bytes) over (order by w.pos rows unbounded preceding) - e.bytes as before
            from unnest(positions, ids) as w(pos, id)
            join outbox.event e on e.id = w.id
            left join outbox.delivery d on open and d.subscription = sub and d.lane = of_lane and d.pos = w.pos) z
   where z.before < bytes_max;
  return next;
end $$;

-- Moves the replay's cursor of one lane, under the lane's fence and from where the batch began. Rows are written as by
-- `settle`: every position is at or below the lane's own cursor. Null: refused, the result is dropped; else whether
-- the live cursor was reached.
create or replace function outbox.settle_replay(sub text, rev integer, who text, of_journey bigint, batch json)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off set jit = off set max_parallel_workers_per_gather = 0 as $$
declare
  s      outbox.subscription;
  x      outbox.settlement;
  live   bigint;
begin
  x := json_populate_record(null::outbox.settlement, batch -> 'settlement');
  -- Lock first, then look, in separate statements.
  perform from outbox.lane l where l.subscription = sub and l.lane = x.lane and l.owner = who and l.fence = x.fence
    for update;
  if not found then
    return null;
  end if;
  select * into s from outbox.subscription where name = sub;
  select c.pos into live from outbox.cursor_of(sub, x.lane) c;
  if s.revision > rev or s.mode <> 'live' or x."to" > live then
    return null;
  end if;
  update outbox.replay p set pos = x."to", met = x."to" >= live, sent = p.sent + x.delivered,
    superseded = p.superseded + x.superseded,
         failed = p.failed + x.failed
   where p.subscription = sub and p.journey = of_journey and p.lane = x.lane and p.pos = x."from" and not p.met;
  if not found then
    return null;
  end if;
  perform outbox.settle_rows(s, x.lane, outbox.clock(), x.done, x.rows, x.blocked);
  if s.coalesced then
    -- The newest row stands for its aggregate from now on.
    delete from outbox.delivery d
     using json_to_recordset(x.rows) as r(pos bigint, aggregate_type text, aggregate_id text)
     where d.subscription = sub and d.lane = x.lane and d.hash = outbox.hash(r.aggregate_type, r.aggregate_id)
       and d.aggregate_type = r.aggregate_type and d.aggregate_id = r.aggregate_id and d.pos < r.pos
       and d.state = 'retrying';
  end if;
  if x.sent > 0 then
    perform outbox.record_attempt(sub, x.lane, x."from", x."to", nextval('outbox.attempt_id'), batch -> 'call',
                                  x.delivered, x.superseded, x.failed, x.rows, false);
  end if;
  return x."to" >= live;
end $$;

-- The same for a ledger: its rows become `pending` again, and are sent like all others.
create or replace function outbox.enlist_again(
  sub text, rev integer, who text, of_journey bigint, of_lane smallint, of_fence bigint, from_pos bigint, to_pos bigint,
  positions bigint[], ids bigint[], hashes integer[], attempts_max integer) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  result boolean;
begin
  result := outbox.settle_replay(sub, rev, who, of_journey, json_build_object('settlement', json_build_object(
    'lane', of_lane, 'fence', of_fence, 'from', from_pos, 'to', to_pos, 'sent', 0, 'delivered', cardinality(positions),
    'superseded', 0, 'failed', 0)));
  if result is null then
    return null;
  end if;
  perform outbox.enlist_rows(sub, of_lane, array_agg(w.pos), array_agg(w.id), array_agg(w.hash),
                             array_agg(e.aggregate_type), array_agg(e.aggregate_id), attempts_max, true)
    from unnest(positions, ids, hashes) as w(pos, id, hash) join outbox.event e on e.id = w.id;
  return result;
end $$;

-- The existing positions: the first one kept, and the head of the log.
create or replace function outbox.kept_range(out first_pos bigint, out last_pos bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  last_pos := coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0);
  select coalesce(min(n.pos), last_pos + 1) into first_pos from outbox.setting t
   cross join lateral generate_series(0, t.lanes - 1) i
   cross join lateral (select g.pos from outbox.log g where g.lane = i order by g.pos limit 1) n;
end $$;

-- Creates the cursors of a replay and the note that keeps its events, in the transaction that creates the journey.
create or replace function outbox.begin_replay(of_journey bigint) returns void
language sql
begin atomic
  insert into outbox.replay (subscription, journey, lane, pos, stop, met)
  select s.name, j.id, l.lane, (j.plan ->> 'from')::bigint - 1, case
         when s.coalesced or s.ledger or not s.ordered then c.pos end,
         c.pos <= (j.plan ->> 'from')::bigint - 1
    from outbox.journey j
    join outbox.subscription s on s.name = j.subject
    join outbox.lane l on l.subscription = s.name
   cross join lateral outbox.cursor_of(j.subject, l.lane) c
   where j.id = of_journey;
  insert into outbox.keep (holder, pos) select 'replay ' || j.id, (j.plan ->> 'from')::bigint - 1 from outbox.journey j
    where j.id = of_journey;
end;
