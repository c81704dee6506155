-- turn: a step, a settle and a read in one statement (docs/adr/one-turn.md).

-- Would a read of these lanes above `known` bring every event there is, as it is? Asked after the step: a definition
-- that was raised or a mode that was changed before it is seen.
create or replace function outbox.reads_all(sub text, rev integer, lanes smallint[], known bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  return (
    select s.mode = 'live' and s.revision <= rev and s.held_cause is null and not s.ledger and s.lanes > 1
           and (select count(*) = 1 and bool_and('*' = any (f.types) and f.aggregates is null and f.from_pos <= known)
                  from outbox.filter f where f.subscription = sub)
           and not exists (select from outbox.delivery d where d.subscription = sub and d.lane = any (reads_all.lanes)
                           and d.next_attempt_at <= outbox.clock())
           and not exists (select from outbox.delivery d where (s.ordered or s.coalesced)
                             and d.subscription = sub and d.lane = any (reads_all.lanes)
                               and d.state in ('retrying', 'dead'))
      from outbox.subscription s where s.name = sub);
end $$;

-- A step, a settle and a read in one transaction: what committed is numbered (`piece` rows at most; null: no step),
-- what was delivered is settled (`batch`; null: nothing), what comes next is read. The step comes first, before
-- anything is written. `known`: the lanes were read up to this head; what a small step numbers after it is handed over
-- without a read. part: 'step', its text in heads; 'settled', a lane; 'read', a row of outbox.read.
create or replace function outbox.turn(
  piece integer, who text, batch json, sub text, rev integer, lanes smallint[], after bigint[], count_max integer,
  bytes_max bigint, scan_max integer, probing boolean, filled boolean[], known bigint default null)
returns table (part text, lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  step  record;
  taken outbox.packed[];
begin
  if piece is not null then
    select * into step from outbox.sequence(piece, turn.lanes, known, count_max, bytes_max);
    if step.head is not null then
      taken := step.taken;
      part := 'step';
      heads := concat_ws(' ', step.numbered, step.head, step.more, step.new_epoch, array_to_string(step.lanes, ','),
                         array_to_string(step.kinds, ','));
      return next;
    end if;
  end if;
  if batch is not null then
    return query select 'settled', l, null::boolean, null::bigint, null::text, null::text, null::smallint
      from outbox.settle(sub, rev, who, batch) l;
  end if;
  if taken is not null and outbox.reads_all(sub, rev, turn.lanes, known) then
    part := 'read';
    heads := null;
    return next;
    return query select 'read', t.lane, false, t.through, t.heads, t.payloads, t.kind_max from unnest(taken) t;
  else
    return query select 'read', r.* from outbox.read(sub, rev, turn.lanes, after, count_max, bytes_max, scan_max,
                                                     probing, filled) r;
  end if;
end $$;
