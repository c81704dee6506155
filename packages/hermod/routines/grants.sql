-- Roles: who may do what. Nothing to PUBLIC; a producer may call four functions and see nothing. Roles belong to the
-- cluster, so they are made by `installRoles` (or by your own administrator); here are only the grants.

-- What a role may do with a table, and with which columns if not with all.
create or replace function outbox.table_grants(role text, relation text) returns text
language sql immutable parallel safe
return case role
  when 'reader' then case relation
    -- Payloads, and columns that may contain a copy of one, stay closed.
    when 'event' then 'select (id, xid, created_at, not_before, bytes, version, type, aggregate_type, aggregate_id)'
    when 'delivery' then 'select (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, '
      || 'attempts, attempts_max, next_attempt_at, first_failed_at, updated_at, fence, code, fingerprint, reason)'
    when 'attempt' then 'select (id, call, subscription, lane, from_pos, to_pos, pos, started_at, duration_ms, '
      || 'worker, outcome, delivered, superseded, failed, dry_run, code)'
    when 'audit' then 'select (id, at, request_id, actor, action, subscription, event_id, pos, reason, count)'
    when 'idempotency' then 'select (event_id, created_at)'
    when 'sink_settings' then null
    else 'select' end
  when 'producer' then null
  else case
    when relation in ('event', 'setting', 'migration', 'routine', 'grantee') then 'select'
    when relation in ('log', 'kind', 'audit') then 'select, insert'
    when role = 'admin' then 'select, insert, update, delete'
    when relation in ('watched', 'sink_settings', 'removed') then 'select'
    when relation = 'attempt' then 'select, insert'
    when relation in ('subscription', 'filter', 'lane') then 'select, insert, update'
    when relation in ('step', 'scheduled', 'inbox') then 'select, insert, delete'
    when relation = 'idempotency' then 'select, delete'
    else 'select, insert, update, delete' end
end;

-- May the role call the function? Readers: what cannot write. Workers: everything but emitting, capturing and deciding.
create or replace function outbox.may_execute(role text, name text, volatility "char", definer boolean) returns boolean
language sql immutable parallel safe
return case role
  when 'producer' then name in ('emit', 'emit_one', 'emit_many', 'emit_keyed', 'lock')
  when 'reader' then name in ('clock', 'retention_report') or (volatility <> 'v' and not definer)
  when 'worker' then name not in ('emit', 'emit_one', 'emit_many', 'emit_keyed', 'watch', 'unwatch', 'capture',
    'capture_truncate', 'decide', 'add_to_decision', 'define', 'remove', 'rebase', 'rolled_back', 'lock_events',
    'fence_off', 'apply_grants', 'grant_role')
  else name not in ('lock_events', 'fence_off') end;

-- Everything a role has, on everything there is. Runs as the owner; leaves are reached through their parents only.
create or replace function outbox.grant_role(prefix text, role text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  name text := quote_ident(prefix || '_' || role);
  x    record;
begin
  execute format(
    'revoke all on all tables in schema outbox from %s; revoke all on all sequences in schema outbox from %s', name,
      name);
  execute format('revoke all on all functions in schema outbox from %s; grant usage on schema outbox to %s', name,
                 name);
  for x in select c.oid::regclass as relation, c.relkind, outbox.table_grants(role, c.relname) as rights
    from pg_catalog.pg_class c
            where c.relnamespace = 'outbox'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition loop
    if x.rights is not null then
      execute format('grant %s on %s to %s', case when x.relkind = 'v' then 'select'
                     else x.rights end, x.relation, name);
    end if;
  end loop;
  for x in select p.oid::regprocedure as call from pg_catalog.pg_proc p
            where p.pronamespace = 'outbox'::regnamespace
              and outbox.may_execute(role, p.proname, p.provolatile, p.prosecdef) loop
    execute format('grant execute on function %s to %s', x.call, name);
  end loop;
  if role <> 'producer' then
    execute format('grant select on all sequences in schema outbox to %s', name);
  end if;
  if role in ('worker', 'admin') then
    execute format('grant usage on sequence outbox.attempt_id to %s', name);
  end if;
end $$;

-- Applied last, whenever routines or tables changed: PUBLIC may execute every new function, and default privileges of
-- one schema cannot change that. Installed roles get rights on what is new; roles that a restore did not bring are
-- skipped.
create or replace function outbox.apply_grants() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  x record;
begin
  -- The lock of migrations: two sessions that grant on one object at the same time fail.
  perform pg_advisory_xact_lock(4841297200);
  revoke all on schema outbox from public;
  revoke all on all tables in schema outbox from public;
  revoke all on all sequences in schema outbox from public;
  revoke all on all functions in schema outbox from public;
  for x in select g.prefix, r.role from outbox.grantee g, unnest(array['producer', 'worker', 'reader', 'admin'])
    as r(role)
            where exists (select from pg_catalog.pg_roles a where a.rolname = g.prefix || '_' || r.role) loop
    perform outbox.grant_role(x.prefix, x.role);
  end loop;
end $$;

select outbox.apply_grants();
