-- The auditor: counts what a window should have numbered and did not.

-- Since when the log is complete: retention may have removed rows that are older. The precision is a second; in doubt
-- a row counts as removed, because what is older was delivered or decided upon.
create or replace function outbox.log_since() returns timestamptz
language sql stable
begin atomic
  select case when first.pos is null or first.pos = 1 then '-infinity'
              else coalesce((select st.at from outbox.step st where st.pos >= first.pos order by st.id limit 1),
                            '-infinity') end
    from (select min(g.pos) as pos from outbox.setting t
           cross join lateral generate_series(0, t.lanes - 1) i
           cross join lateral (select g.pos from outbox.log g where g.lane = i order by g.pos limit 1) g) first;
end;

-- Events that are neither in the log nor filed. `retired`: the last step had numbered them, and the part of the log
-- where they must have been is gone.
create or replace function outbox.not_in_log(last outbox.step, fenced bigint)
returns table (
  id bigint, not_before timestamptz, type text, aggregate_type text, aggregate_id text, bytes integer, retired boolean)
language sql stable
begin atomic
  select e.id, e.not_before, e.type, e.aggregate_type, e.aggregate_id, e.bytes,
         greatest(e.created_at, e.not_before) <= l.since and (e.id <= fenced
           or coalesce(pg_visible_in_snapshot(e.xid, coalesce((last).previous, (last).snapshot)), false)
           or coalesce(e.id <= (last).reached and pg_visible_in_snapshot(e.xid, (last).snapshot), false))
    from outbox.event e, (select outbox.log_since() as since) l
   where not exists (select from outbox.log g where g.event_id = e.id)
     and not exists (select from outbox.scheduled s where s.event_id = e.id);
end;

-- The auditor: events the last finished window had to number that are neither in the log nor filed. Without `full`
-- only those of the windows since the last audit; their positions lie above the audited one.
create or replace function outbox.count_missing(
  is_full boolean, out missing bigint, out first_id bigint, out step_id bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  last  outbox.step;
  seen  outbox.audited;
  upper pg_snapshot;
begin
  select * into last from outbox.step order by id desc limit 1;
  select * into seen from outbox.audited;
  upper := coalesce(last.previous, last.snapshot);
  select max(st.id) into step_id from outbox.step st where st.previous is null and st.id <= last.id;
  if is_full or seen.snapshot is null then
    select count(*), min(u.id) into missing, first_id from outbox.not_in_log(last,
          (select fenced_id from outbox.setting)) u
      join outbox.event e on e.id = u.id
     where not u.retired and (u.id <= (select fenced_id from outbox.setting) or pg_visible_in_snapshot(e.xid, upper));
    return;
  end if;
  select count(*), min(w.id) into missing, first_id from (
      select a.id from outbox.event a
       where a.xid >= pg_snapshot_xmax(seen.snapshot) and a.xid < pg_snapshot_xmax(upper)
         and pg_visible_in_snapshot(a.xid, upper)
      union all
      select b.id from outbox.event b
       where b.xid = any (array(select x from pg_snapshot_xip(seen.snapshot) x
                                where pg_visible_in_snapshot(x, upper)))) w
   where w.id > (select fenced_id from outbox.setting)
     and not exists (select from outbox.log g where g.event_id = w.id and g.pos > seen.pos)
     and not exists (select from outbox.scheduled s where s.event_id = w.id);
end $$;

-- The auditor's mark, set where nothing was missing: the last finished step that was looked at.
create or replace function outbox.note_audited(step_id bigint) returns void
language sql
begin atomic
  insert into outbox.audited (at, pos, snapshot)
  select st.at, st.pos, st.snapshot from outbox.step st where st.id = step_id
  on conflict (only_row) do update set at = excluded.at, pos = excluded.pos, snapshot = excluded.snapshot;
end;
