// What the harness adds to the database: triggers that copy what happens to leases, cursors and
// delivery rows, so that the checks can look at the whole run and not only at its end.

export const AUDIT = `
  create table chaos.lane_audit (n bigint generated always as identity primary key,
    subscription text, lane smallint, fence bigint, owner text, pos bigint, parked boolean, again boolean, by text,
    at timestamptz not null default clock_timestamp());
  create function chaos.audit_lane() returns trigger language plpgsql as $$ begin
    insert into chaos.lane_audit (subscription, lane, fence, owner, parked, again, by)
    values (new.subscription, new.lane, new.fence, new.owner, new.parked is not null, new.again_at is not null,
            current_setting('application_name'));
    return null;
  end $$;
  create function chaos.audit_cursor() returns trigger language plpgsql as $$ begin
    insert into chaos.lane_audit (subscription, lane, fence, pos, by)
    values (new.subscription, new.lane, new.fence, new.pos, current_setting('application_name'));
    return null;
  end $$;
  create trigger audit after update on outbox.lane for each row execute function chaos.audit_lane();
  create trigger audit after insert on outbox.cursor for each row execute function chaos.audit_cursor();

  create table chaos.delivery_audit (n bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
    subscription text, lane smallint, aggregate text, state0 text, pos0 bigint, state text, pos bigint, event_id bigint, retrying int, by text);
  -- At commit: how many rows of the aggregate are retrying then.
  create function chaos.audit_delivery() returns trigger language plpgsql as $$ begin
    insert into chaos.delivery_audit (subscription, lane, aggregate, state0, pos0, state, pos, event_id, retrying, by)
    select new.subscription, new.lane, new.aggregate_type || '/' || new.aggregate_id,
           case tg_op when 'UPDATE' then old.state end, case tg_op when 'UPDATE' then old.pos end, new.state, new.pos, new.event_id,
           (select count(*) from outbox.delivery d where d.subscription = new.subscription and d.lane = new.lane
              and d.aggregate_type = new.aggregate_type and d.aggregate_id = new.aggregate_id and d.state = 'retrying'),
           current_setting('application_name');
    return null;
  end $$;
  create constraint trigger audit after insert or update on outbox.delivery
    deferrable initially deferred for each row when (new.state = 'retrying') execute function chaos.audit_delivery();`
