-- The leaves of event, log and attempt.

-- Adds one leaf without waiting for open transactions: LIKE, CHECK, ATTACH (never PARTITION OF).
create or replace function outbox.add_partition(parent text, from_value bigint, to_value bigint) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  leaf text := format('%s_%s', parent, lpad(from_value::text, 19, '0'));
  part text := case parent when 'log' then 'pos' else 'id' end;
begin
  if parent not in ('event', 'log', 'attempt') or from_value >= to_value then
    perform outbox.refuse('HM001', format('HMD_OPTION_INVALID: no partition of %s from %s to %s', parent, from_value,
      to_value));
  end if;
  execute format('create table outbox.%I (like outbox.%I including all)', leaf, parent);
  execute format('alter table outbox.%I add constraint %I check (%I >= %s and %I < %s)', leaf, leaf || '_range', part,
                 from_value, part, to_value);
  if parent = 'event' then
    -- Append-only and read in order soon after: never worth an autovacuum before the leaf is closed.
    execute format('alter table outbox.%I set (autovacuum_vacuum_insert_scale_factor = 0.5)', leaf);
  end if;
  execute format('alter table outbox.%I attach partition outbox.%I for values from (%s) to (%s)', parent, leaf,
                 from_value, to_value);
  execute format('alter table outbox.%I drop constraint %I', leaf, leaf || '_range');
  return leaf;
end $$;

-- The leaves and their ranges, read from the catalogue. The bounds of a default leaf are null.
create or replace view outbox.partition as
select parent.relname as parent, leaf.relname as name, leaf.oid as leaf,
       (regexp_match(bound.says, 'FROM \(''?(-?\d+)''?\)'))[1]::bigint as from_value,
       (regexp_match(bound.says, 'TO \(''?(-?\d+)''?\)'))[1]::bigint as to_value
  from pg_catalog.pg_inherits i
  join pg_catalog.pg_class parent on parent.oid = i.inhparent
  join pg_catalog.pg_class leaf on leaf.oid = i.inhrelid
 cross join lateral pg_catalog.pg_get_expr(leaf.relpartbound, leaf.oid) as bound(says)
 where i.inhparent in ('outbox.event'::regclass, 'outbox.log'::regclass, 'outbox.attempt'::regclass)
   and leaf.relkind = 'r';

-- Only steps write the log, so a step adds the partition itself if upkeep was late. Somebody else may hold the lock
-- that this needs (ANALYZE, for example): a step does not wait for it while there is room.
create or replace function outbox.ensure_log_partition(from_pos bigint, to_pos bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  start_at bigint := from_pos;
  leaf_end bigint;
begin
  while start_at <= to_pos loop
    select max(p.to_value) into leaf_end from outbox.partition p
     where p.parent = 'log' and p.from_value <= start_at and p.to_value > start_at;
    if leaf_end is null then
      -- Up to the next existing leaf, which upkeep may have added ahead.
      select coalesce(min(p.from_value), start_at + 1000000) into leaf_end from outbox.partition p
       where p.parent = 'log' and p.from_value > start_at and p.from_value < start_at + 1000000;
      perform outbox.add_partition('log', start_at, leaf_end);
    end if;
    start_at := leaf_end;
  end loop;
  update outbox.setting t set covered = start_at where t.covered <> start_at;
exception when lock_not_available then
  if start_at <= from_pos + (to_pos - from_pos) / 2 then
    raise;
  end if;
end $$;
