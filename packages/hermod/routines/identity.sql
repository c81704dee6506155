-- Which database is this? The guard against numbering in a copy or under a restored log.

-- The identity of this database: what a restore or a failover changes. Hosted services refuse some of these looks. What
-- cannot be seen is null, and `doctor` says what goes unnoticed then. Each look has a block of its own: privileges are
-- checked when a statement starts.
create or replace function outbox.identity(out system_identifier bigint, out database oid, out timeline integer)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  select d.oid into database from pg_catalog.pg_database d where d.datname = current_database();
  begin
    select c.system_identifier into system_identifier from pg_catalog.pg_control_system() c;
  exception when insufficient_privilege or feature_not_supported or undefined_function then null;
  end;
  begin
    timeline := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
  exception when insufficient_privilege or feature_not_supported or undefined_function then null;
  end;
end $$;

-- The same as text, remembered by the session: a server that may write keeps its identity and its timeline until it is
-- started again, and asking costs a fifth of a small step. '-': not to be seen.
create or replace function outbox.remember_identity() returns text
language sql
begin atomic
  select set_config('outbox.identity', concat_ws(' ', coalesce(i.system_identifier::text, '-'), i.database,
                                                 coalesce(i.timeline::text, '-')), false) from outbox.identity() i;
end;

-- Refuses if a step could number wrongly: another isolation level, a standby, a sequence that gives out ids in blocks.
create or replace function outbox.assert_sequencer() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform outbox.refuse('HM011', 'HMD_ISOLATION: a step runs under READ COMMITTED only');
  end if;
  -- A snapshot never lists the own transaction as in progress: the step would take it for finished, and events that it
  -- emits later would be lost.
  if pg_current_xact_id_if_assigned() is not null then
    perform outbox.refuse('HM011', 'HMD_ISOLATION: a step runs in a transaction that has not written yet');
  end if;
  if pg_is_in_recovery() then
    perform outbox.refuse('HM012', 'HMD_STANDBY: this server is a standby; connect to the primary');
  end if;
  if (select s.seqcache from pg_catalog.pg_sequence s where s.seqrelid = 'outbox.event_id'::regclass) <> 1 then
    perform outbox.refuse('HM013',
      'HMD_SEQUENCE_CACHE: ids are not handed out in order; run: alter sequence outbox.event_id cache 1');
  end if;
end $$;

-- The restore guard: xids of another cluster mean nothing here, so numbering by them could lose events silently.
create or replace function outbox.assert_same_database(
  last outbox.step, system_identifier bigint, database oid, cur pg_snapshot) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if last.id is null then
    if exists (select from outbox.event e where e.xid >= pg_snapshot_xmax(cur)
               and e.xid >= pg_snapshot_xmax(pg_current_snapshot())) then
      perform outbox.refuse('HM015',
        'HMD_RESTORED: events of another cluster are here but no step; run: hermod rebase');
    elsif exists (select from outbox.log) then
      perform outbox.refuse('HM015', 'HMD_RESTORED: a log is here but no step; run: hermod rebase');
    end if;
  elsif last.system_identifier <> system_identifier or last.database <> database then
    perform outbox.refuse('HM015', 'HMD_RESTORED: this database was restored or moved; run: hermod rebase');
  elsif pg_snapshot_xmax(cur) < pg_snapshot_xmax(last.snapshot) then
    perform outbox.refuse('HM015', 'HMD_RESTORED: transaction ids went backwards; run: hermod rebase');
  end if;
  if outbox.last_id() < greatest((select st.fenced_id from outbox.setting st), last.last_id) then
    perform outbox.refuse('HM015', 'HMD_RESTORED: the id sequence lies behind restored events; run: hermod rebase');
  end if;
end $$;

-- The caller has seen positions that are not there: they would be given again, to other events. Without any step the
-- schema is new.
create or replace function outbox.assert_head(last outbox.step, head bigint, known_head bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if last.id is not null then
    perform outbox.refuse('HM018', format(
      'HMD_HEAD_WENT_BACK: the log ends at position %s, and this process has seen position %s', head, known_head));
  end if;
end $$;
