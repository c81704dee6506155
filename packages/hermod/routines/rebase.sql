-- rebase: after a restore, numbers what the log lacks and starts again with this cluster's transaction ids.
--
--   lanes fit? ──▶ lock lanes, lock event ──▶ number the rest ──▶ fence, sequences ──▶ new epoch, step, audit row
--   (no lock)       (open writers: refused)     (anti-join)         (ids, not xids)        (all one transaction)

-- Does the log fit these lanes, codes and events? Reads all of it, before anything is locked.
create or replace function outbox.assert_log_fits(accept_missing boolean, out orphans bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  t outbox.setting;
  x record;
begin
  select * into t from outbox.setting;
  -- Codes that were not restored are read back from the log.
  insert into outbox.kind (code, type, aggregate_type)
  select min(l.kind), e.type, e.aggregate_type from outbox.log l join outbox.event e on e.id = l.event_id
   where l.kind <> 0 and not exists (select from outbox.kind k
                                     where k.type = e.type and k.aggregate_type = e.aggregate_type)
   group by e.type, e.aggregate_type;
  select count(*) filter (where l.lane <> outbox.lane_of(l.hash, t.lanes)
                             or l.hash <> outbox.hash(e.aggregate_type, e.aggregate_id)) as moved,
         count(*) filter (where l.kind <> 0 and e.id is not null and l.kind is distinct from k.code) as renamed,
         count(*) filter (where e.id is null and l.pos > n.pos) as orphans into x
    from outbox.log l
    left join outbox.event e on e.id = l.event_id
    left join outbox.kind k on k.type = e.type and k.aggregate_type = e.aggregate_type
    left join (select i, min(c.pos) as pos from generate_series(0, t.lanes - 1) i
                 join outbox.subscription s on true
                 join outbox.lane a on a.subscription = s.name and (s.lanes = 1 or a.lane = i)
                cross join lateral outbox.cursor_of(s.name, a.lane) c group by i) n on n.i = l.lane;
  if x.moved > 0 then
    perform outbox.refuse('HM017', format(
      'HMD_REBASE_LANES: %s rows of the log lie in other lanes than %s lanes would give them', x.moved, t.lanes));
  elsif x.renamed > 0 then
    perform outbox.refuse('HM015',
      format('HMD_RESTORED: %s rows of the log carry codes that outbox.kind gives to other types', x.renamed),
      'Restore outbox.kind together with outbox.log, then run hermod rebase again.');
  elsif x.orphans > 0 and not accept_missing then
    perform outbox.refuse('HM015', format(
      'HMD_RESTORED: %s events that are still to be delivered are in the log but not in outbox.event', x.orphans),
      'Restore outbox.event too, then run hermod rebase again; or accept the loss (--accept-missing): '
        || 'they become dead letters.');
  end if;
  orphans := x.orphans;
end $$;

-- Which sessions have a lock on the events: named in the refusal, so that somebody can end them. Null: none, or not to
-- be seen.
create or replace function outbox.holders() returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return (select string_agg(says, '; ') from (
    select coalesce(format('pid %s (%s, %s, since %s)', a.pid,
                           coalesce(nullif(a.application_name, ''), a.usename::text), a.state,
                             a.xact_start::timestamptz(0)),
             'a prepared transaction (see pg_prepared_xacts)') as says
      from pg_catalog.pg_locks l left join pg_catalog.pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'relation' and l.database = (select d.oid from pg_catalog.pg_database d
                                                     where d.datname = current_database())
       and l.relation = 'outbox.event'::regclass and l.granted and l.pid is distinct from pg_backend_pid() limit 10) t);
exception when insufficient_privilege then
  return null;
end $$;

-- No step while we look; its own transaction is short.
create or replace function outbox.lock_steps() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(4841297201);
exception when lock_not_available then
  perform outbox.refuse('HM016', 'HMD_REBASE_BUSY: a step is still running');
end $$;

-- Blocks inserts and readers from here on: the fence below is a constraint. Waits for open writers for a while.
create or replace function outbox.lock_events() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- In the order of settle: lanes first, one by one, then events.
  perform from outbox.lane l order by l.subscription, l.lane for update;
  lock table outbox.event in access exclusive mode;
exception when lock_not_available then
  raise exception using errcode = 'HM016', message = 'HMD_REBASE_BUSY: transactions that use outbox.event are open',
    detail = coalesce(outbox.holders(), '');
end $$;

-- The highest event id in any restored table.
create or replace function outbox.highest_id() returns bigint
language sql stable
begin atomic
  select greatest((select max(id) from outbox.event), (select max(event_id) from outbox.log),
                  (select max(event_id) from outbox.scheduled),
                  (select max(event_id) from outbox.idempotency), (select max(event_id) from outbox.delivery),
                    (select fenced_id from outbox.setting));
end;

-- The highest position in any restored table: if parts are of different times, not always that of the log.
create or replace function outbox.highest_pos() returns bigint
language sql stable
begin atomic
  select greatest(0, (select max(pos) from outbox.log), (select max(pos) from outbox.step),
                  (select max(pos) from outbox.cursor),
                  (select max(pos) from outbox.shadow), (select max(pos) from outbox.delivery),
                    (select max(start_pos) from outbox.subscription));
end;

-- Restored rows have xids of the old cluster, which this one will reach some day: from now on nothing at or below
-- `up_to` is looked up by xid. The constraint makes sure that nothing new can get there, whatever the sequence does.
create or replace function outbox.fence_off(up_to bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  s record;
  highest bigint;
begin
  update outbox.setting set fenced_id = up_to;
  if up_to > 0 then
    perform setval('outbox.event_id', greatest(up_to, (select q.last_value from outbox.event_id q)));
    alter table outbox.event drop constraint if exists event_fence;
    execute format('alter table outbox.event add constraint event_fence check (id > %s) not valid', up_to);
  end if;
  -- Rows restored without their sequences: a step, audit or attempt must not get an id that is taken.
  perform setval('outbox.attempt_id', greatest((select max(id) from outbox.attempt),
                                               (select q.last_value from outbox.attempt_id q)));
  for s in
    select a.attrelid::regclass as relation, a.attname, pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)
           as sequence
      from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'outbox'::regnamespace and c.relkind = 'r' and a.attidentity <> ''
  loop
    execute format('select max(%I) from %s', s.attname, s.relation) into highest;
    if highest is not null then
      execute format('select setval(%L, greatest(%s, (select last_value from %s)))', s.sequence, highest, s.sequence);
    end if;
  end loop;
end $$;

-- Numbers what is neither in the log nor filed, in order of id; files what may not be delivered yet.
create or replace function outbox.number_rest(
  last outbox.step, fenced bigint, base bigint, lane_count smallint, due timestamptz,
  out numbered bigint, out filed bigint, out retired bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  delete from outbox.scheduled s where exists (select from outbox.log g where g.event_id = s.event_id)
                                    or not exists (select from outbox.event e where e.id = s.event_id);
  perform outbox.ensure_log_partition(base + 1, base + 1 + (select count(*) from outbox.not_in_log(last, fenced) u
                                                            where not u.retired));
  with rest as materialized (
    select * from outbox.not_in_log(last, fenced)
  ), put_off as (
    insert into outbox.scheduled (due, event_id) select r.not_before, r.id from rest r
      where r.not_before > number_rest.due and not r.retired
    returning event_id
  ), logged as (
    insert into outbox.log (pos, event_id, hash, bytes, lane, kind)
    select base + row_number() over (order by r.id), r.id, h.hash, r.bytes, outbox.lane_of(h.hash, lane_count),
           coalesce(k.code, outbox.kind_code(r.type, r.aggregate_type))
      from rest r
     cross join lateral (select outbox.hash(r.aggregate_type, r.aggregate_id) as hash) h
      left join outbox.kind k on k.type = r.type and k.aggregate_type = r.aggregate_type
     where (r.not_before is null or r.not_before <= number_rest.due) and not r.retired
    returning event_id
  ) select (select count(*) from logged), (select count(*) from put_off), (select count(*) from rest r where r.retired)
      into numbered, filed, retired;
end $$;

-- Once per request id. The answer is what the audit row keeps.
create or replace function outbox.rebase(
  request text, who text, why text, wait_ms integer default 10000, accept_missing boolean default false) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  last   outbox.step;
  me     record;
  t      outbox.setting;
  now    timestamptz := outbox.clock();
  cur    pg_snapshot;
  up_to  bigint;
  era    integer;
  base   bigint;
  lost   bigint;
  n      record;
  answer jsonb;
begin
  perform outbox.assert_sequencer();
  perform set_config('lock_timeout', wait_ms || 'ms', true);
  perform outbox.lock_steps();
  select a.after || '{"repeated": true}' into answer from outbox.audit a where a.request_id = request;
  if answer is not null then
    return answer;
  end if;
  lost := outbox.assert_log_fits(accept_missing);
  perform outbox.lock_events();
  -- Lock first, then look, in separate statements.
  select * into last from outbox.step order by id desc limit 1;
  select * into t from outbox.setting;
  select * into me from outbox.identity();
  select pg_current_snapshot() into cur;
  up_to := coalesce(outbox.highest_id(), 0);
  era := greatest(coalesce(last.epoch, 0), outbox.highest_pos() >> 32, me.timeline - 2) + 1;
  base := outbox.start_epoch(era);
  select * into n from outbox.number_rest(last, t.fenced_id, base, t.lanes, greatest(now, last.due_at));
  perform outbox.fence_off(up_to);
  perform set_config('synchronous_commit', 'on', true);
  -- `due_at` starts again: the next step numbers what is filed and due by now, whatever the old clock said.
  insert into outbox.step (at, snapshot, pos, due_at, due_id, epoch, timeline, database, system_identifier)
  values (now, cur, base + n.numbered, '-infinity', 0, era, coalesce(me.timeline, 0), me.database,
          me.system_identifier);
  delete from outbox.audited;
  answer := jsonb_build_object('numbered', n.numbered, 'filed', n.filed, 'retired', n.retired, 'missing', lost,
    'position', (base + n.numbered)::text, 'epoch', era, 'fencedId', up_to::text);
  insert into outbox.audit (request_id, actor, action, pos, reason, count, before, after)
  values (request, who, 'rebase', base + n.numbered, why, n.numbered, to_jsonb(last), answer);
  return answer;
end $$;

-- Storage was rolled back under the same identity and timeline, which cannot be seen from inside: an operator raises
-- the epoch.
create or replace function outbox.rolled_back(request text, who text, why text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  last   outbox.step;
  me     record;
  answer jsonb;
  cur    pg_snapshot;
begin
  perform outbox.assert_sequencer();
  perform pg_advisory_xact_lock(4841297201);
  select a.after || '{"repeated": true}' into answer from outbox.audit a where a.request_id = request;
  if answer is not null then
    return answer;
  end if;
  select * into last from outbox.step order by id desc limit 1;
  select * into me from outbox.identity();
  select pg_current_snapshot() into cur;
  perform outbox.assert_same_database(last, me.system_identifier, me.database, cur);
  last.epoch := greatest(coalesce(last.epoch, 0), outbox.highest_pos() >> 32) + 1;
  perform outbox.ensure_log_partition((last.epoch::bigint << 32) + 1, (last.epoch::bigint << 32) + 2);
  answer := jsonb_build_object('numbered', 0, 'filed', 0, 'retired', 0, 'missing', 0,
    'position', outbox.start_epoch(last.epoch)::text, 'epoch', last.epoch, 'fencedId',
      (select t.fenced_id::text from outbox.setting t));
  perform set_config('synchronous_commit', 'on', true);
  insert into outbox.step (at, snapshot, previous, reached, filed_after, pos, due_at, due_id, epoch, timeline, database,
                           system_identifier)
  values (outbox.clock(), coalesce(last.snapshot, '3:3:'), last.previous, last.reached, last.filed_after,
          (answer ->> 'position')::bigint,
    coalesce(last.due_at, '-infinity'), coalesce(last.due_id, 0), last.epoch, coalesce(me.timeline, last.timeline, 0),
      me.database, coalesce(me.system_identifier, last.system_identifier));
  insert into outbox.audit (request_id, actor, action, pos, reason, count, before, after)
  values (request, who, 'rolled-back', (answer ->> 'position')::bigint, why, 0, to_jsonb(last), answer);
  return answer;
end $$;
