-- The tables. `event` and `log` are append-only; everything that changes is small.

-- Defaults below name it, so it must exist before them; routines/clock.sql keeps it up to date.
create function outbox.clock() returns timestamptz language sql volatile parallel safe
return clock_timestamp();

-- One row: what was fixed at install, and what `rebase` fenced off.
create table outbox.setting (
  only_row   boolean  primary key default true check (only_row),
  lanes      smallint not null default 16 check (lanes between 1 and 256),
  -- event ids up to here were numbered by a rebase: never looked at by xid again
  fenced_id  bigint   not null default 0,
  covered    bigint   not null default 0   -- positions from the head up to here (not included) have a leaf of the log
);
insert into outbox.setting default values;

-- CACHE must stay 1: with more, ids are not in order of emission within an aggregate.
create sequence outbox.event_id as bigint cache 1;

-- A transaction has its xid before it takes an id: defaults are evaluated in the order of columns. The numbering relies
-- on it.
create table outbox.event (
  xid            xid8        not null default pg_current_xact_id(),  -- top-level transaction, also inside savepoints
  id             bigint      not null default nextval('outbox.event_id'),
  created_at     timestamptz not null default outbox.clock(),
  not_before     timestamptz,
  bytes          integer     not null,
  version        smallint    not null default 1,
  type           text        not null,
  aggregate_type text        not null,
  aggregate_id   text        not null,
  key            text,       -- the idempotency key, which destinations may know the event by
  headers        json,
  payload        json        not null,
  primary key (id)
) partition by range (id);
-- Every function that inserts an event checks it (`outbox.assert_event` and its like), and nobody else may insert. As
-- CHECK constraints, every statement would read the same conditions from the catalogue, which costs an emit a quarter
-- of its time (docs/adr/packed-reads.md).
create index event_xid on outbox.event (xid);
create index event_scheduled on outbox.event (xid) where not_before is not null;

-- A small code for each pair (event type, aggregate type), so that filters read only the log. 0 = more than 32,767
-- pairs.
create table outbox.kind (
  code           smallint not null,   -- 0 from the 32,768th pair on
  type           text not null,
  aggregate_type text not null,
  primary key (type, aggregate_type)
);

-- The numbered log: 28 bytes of data per row. `bytes` is the size of the payload, so that a read knows where to stop
-- before it looks up events.
create table outbox.log (
  pos      bigint   not null,
  event_id bigint   not null,
  hash     integer  not null,
  bytes    integer  not null,
  lane     smallint not null,
  kind     smallint not null,
  primary key (lane, pos)
) partition by range (pos);
create index log_event_id on outbox.log using brin (event_id) with (pages_per_range = 16, autosummarize = on);

-- One row per sequencing step. `previous` is set while the window (previous, snapshot] is still being numbered in
-- pieces; `reached` is then the highest event id done, `filed_after` the time beyond which its events were filed as
-- scheduled. `due_*` is how far scheduled events have been numbered. `last_id` was the last event id given out when
-- `snapshot` was about to be taken, and `xid` was assigned after that: events up to `last_id` have an xid below `xid`.
create table outbox.step (
  id                bigint      generated always as identity primary key,
  at                timestamptz not null,
  snapshot          pg_snapshot not null,
  last_id           bigint      not null default 0,
  xid               xid8        not null default pg_current_xact_id(),
  previous          pg_snapshot,
  reached           bigint,
  filed_after       timestamptz,
  pos               bigint      not null,
  due_at            timestamptz not null,
  due_id            bigint      not null,
  epoch             integer     not null,
  timeline          integer     not null,
  database          oid         not null,
  system_identifier bigint
);
create index step_at on outbox.step (at);
create index step_pos on outbox.step (pos, at);   -- the time index of the log, by position

-- Events that may not be numbered yet.
create table outbox.scheduled (
  due      timestamptz not null,
  event_id bigint      not null,
  primary key (due, event_id)
);

create table outbox.idempotency (
  key        text        primary key check (octet_length(key) between 1 and 200),
  event_id   bigint      not null,
  hash       bytea       not null,
  created_at timestamptz not null default outbox.clock()
);
create index idempotency_created_at on outbox.idempotency (created_at);

-- A named consumer. The `held_*` columns are its circuit breaker, shared by all workers.
create table outbox.subscription (
  name         text        primary key check (name ~ '^[a-z][a-z0-9_.:-]{0,62}$'),
  revision     integer     not null check (revision >= 1),
  definition   jsonb       not null,
  mode         text        not null default 'live' check (mode in ('live', 'dry-run', 'paused')),
  mode_says    text,
  mode_by      text,
  mode_since   timestamptz not null default outbox.clock(),
  lanes        smallint    not null,
  ordered      boolean     not null,
  coalesced    boolean     not null,
  ledger       boolean     not null,
  dead_holds   boolean     not null,
  start_pos    bigint      not null,
  created_at   timestamptz not null default outbox.clock(),
  served_at    timestamptz not null default outbox.clock(),
  held_cause   text        check (held_cause in ('unavailable', 'misconfigured')),
  held_since   timestamptz,
  held_says    text,
  held_count   integer     not null default 0,
  probe_at     timestamptz,
  probe_owner  text,
  check ((held_cause is null) = (held_since is null) and (held_cause is null) = (probe_at is null))
);

-- What a subscription listens to, from which position on. A later filter never reaches back.
create table outbox.filter (
  subscription text   not null references outbox.subscription on delete cascade,
  from_pos     bigint not null,
  types        text[] not null,
  aggregates   text[],
  primary key (subscription, from_pos)
);

-- Lease, owner and fence; written at claim, renewal and release only. `parked`: the last call of this lane that its
-- destination took as a task: its handle, the range it covers, and the cursor it began at. Void once the cursor has
-- moved.
create table outbox.lane (
  subscription text        not null references outbox.subscription on delete cascade,
  lane         smallint    not null,
  owner        text,
  fence        bigint      not null default 0,
  lease_until  timestamptz not null default '-infinity',
  parked       jsonb       check (length(parked ->> 'handle') between 1 and 2000),
  -- The former owner's lease ran out: what it may have been sending is sent again at `again_at` (routines/again.sql).
  again_at     timestamptz,
  again_from   bigint,
  again_since  bigint,
  again_hashes integer[]   not null default '{}',
  primary key (subscription, lane)
) with (fillfactor = 50);

-- Append-only; the newest is the last by (fence, pos). Old entries lie where no scan starts. No foreign key: with one,
-- every settle would lock the subscription's row once for each lane.
create table outbox.cursor (
  subscription text   not null,
  lane         smallint not null,
  fence        bigint not null,
  pos          bigint not null,
  delivered    bigint not null default 0,   -- events delivered by this lane since it exists
  primary key (subscription, lane, fence, pos)
);
-- The cursor of a dry run: same shape, moves nothing else.
create table outbox.shadow (like outbox.cursor including all);

-- Exceptions of ordinary sinks; every event of ledger sinks.
create table outbox.delivery (
  subscription    text        not null references outbox.subscription on delete cascade,
  lane            smallint    not null,
  pos             bigint      not null,
  event_id        bigint      not null,
  aggregate_type  text        not null,
  aggregate_id    text        not null,
  hash            integer     not null,
  state           text        not null
    check (state in ('pending', 'retrying', 'sending', 'delivered', 'unknown', 'dead', 'discarded')),
  attempts        integer     not null default 0 check (attempts >= 0),
  attempts_max    integer     not null default 6,
  next_attempt_at timestamptz,
  first_failed_at timestamptz,
  updated_at      timestamptz not null,
  fence           bigint      not null default 0,
  code            text,
  error           text,
  fingerprint     text,
  reason          text,
  receipt         json,
  correction      json,       -- replaces the payload (and headers) of this delivery only
  event           json,       -- the event itself, copied before retention empties its partition
  primary key (subscription, lane, pos),
  check ((state in ('pending', 'retrying')) = (next_attempt_at is not null))
);
create index delivery_due       on outbox.delivery (subscription, lane, next_attempt_at)
  where next_attempt_at is not null;
create index delivery_aggregate on outbox.delivery (subscription, lane, hash) where state <> 'delivered';
create index delivery_state     on outbox.delivery (subscription, state, updated_at);
create index delivery_event     on outbox.delivery (event_id);

-- What was sent: one row per call and lane (pos null), one row per event that did not succeed (pos set). Small calls
-- that followed each other within 20 ms and passed share one.
create sequence outbox.attempt_id as bigint;
create table outbox.attempt (
  id           bigint      not null default nextval('outbox.attempt_id'),
  call         bigint      not null,
  subscription text        not null,
  lane         smallint    not null,
  from_pos     bigint      not null,
  to_pos       bigint      not null,
  pos          bigint,
  started_at   timestamptz not null,
  duration_ms  integer     not null,
  worker       text        not null,
  outcome      text        not null,
  delivered    integer     not null default 0,
  superseded   integer     not null default 0,
  failed       integer     not null default 0,
  dry_run      boolean     not null default false,
  code         text,
  error        text,
  primary key (id)
) partition by range (id);
create index attempt_range on outbox.attempt (subscription, lane, to_pos);
create index attempt_pos on outbox.attempt (subscription, pos) where pos is not null;   -- failures of one event
create index attempt_started_at on outbox.attempt using brin (started_at)
  with (pages_per_range = 16, autosummarize = on);

create table outbox.worker (
  id            text        primary key,
  name          text        not null,
  host          text        not null,
  pid           integer     not null,
  version       text        not null,
  subscriptions text[]      not null,
  draining      boolean     not null default false,
  started_at    timestamptz not null,
  heartbeat_at  timestamptz not null
) with (fillfactor = 50);

-- Every decision of a person or of a configured policy, once per request id.
create table outbox.audit (
  id           bigint      generated always as identity primary key,
  at           timestamptz not null default outbox.clock(),
  request_id   text        not null unique,
  actor        text        not null,
  action       text        not null,
  subscription text,
  event_id     bigint,
  pos          bigint,
  reason       text,
  count        bigint,
  before       jsonb,
  after        jsonb
);
create index audit_at on outbox.audit (at);
create index audit_event on outbox.audit (event_id) where event_id is not null;

-- The inbox of consumers: messages already handled.
create table outbox.inbox (
  consumer   text        not null check (octet_length(consumer) between 1 and 128),
  message_id text        not null check (octet_length(message_id) between 1 and 512),
  at         timestamptz not null default outbox.clock(),
  primary key (consumer, message_id)
);
create index inbox_at on outbox.inbox (at);


-- The settlement of one lane.
create type outbox.settlement as (lane smallint, fence bigint, "from" bigint, "to" bigint, sent integer,
  delivered integer, superseded integer, failed integer, rows json, held json, done json);

-- lz4 compresses payloads faster than pglz, where the server was built with it. Before the first leaf: leaves
-- that exist already would not follow.
do $$ begin
  execute 'alter table outbox.event alter column payload set compression lz4';
exception when feature_not_supported or invalid_parameter_value then null;
end $$;

-- The first leaves; `outbox.add_partition` adds later ones without waiting for anybody.
create table outbox.event_0000000000000000001 partition of outbox.event for values from (1) to (1000001)
  with (autovacuum_vacuum_insert_scale_factor = 0.5);
create table outbox.log_0000000000000000001 partition of outbox.log for values from (1) to (1000001);
update outbox.setting set covered = 1000001;
create table outbox.attempt_0000000000000000001 partition of outbox.attempt for values from (1) to (1000001);
-- With a default leaf, an insert by a producer never fails because a partition is missing. Steps, the only writers of
-- the log, add their own.
create table outbox.event_default partition of outbox.event default;
create table outbox.attempt_default partition of outbox.attempt default;
