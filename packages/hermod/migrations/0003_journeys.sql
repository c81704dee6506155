-- Journeys: long work that survives its process. Their states are drawn in routines/journey.sql.

create table outbox.journey (
  id           bigint      generated always as identity primary key,
  kind         text        not null check (kind in ('replay', 'rebuild', 'verify', 'backfill')),
  subject      text        not null check (octet_length(subject) between 1 and 200),   -- subscription or index
  state        text        not null default 'queued'
    check (state in ('queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled')),
  phase        text,
  plan         jsonb       not null default '{}',   -- what was asked
  progress     jsonb       not null default '{}',   -- done, total and what the kind needs to continue
  result       jsonb,
  error        text,
  -- what an operator wants
  asked        text        not null default 'run' check (asked in ('run', 'pause', 'cancel')),
  owner        text,
  owner_until  timestamptz,
  requested_by text        not null,
  reason       text,
  created_at   timestamptz not null default outbox.clock(),
  started_at   timestamptz,
  ended_at     timestamptz,
  updated_at   timestamptz not null default outbox.clock(),
  check ((state in ('succeeded', 'failed', 'cancelled')) = (ended_at is not null)),
  check ((state = 'running') = (owner is not null) and (owner is null) = (owner_until is null))
) with (fillfactor = 50);
create index journey_open on outbox.journey (id) where ended_at is null;
create index journey_subject on outbox.journey (subject, id);
-- Begun and not ended: one per subject and kind; a first fill is a rebuild.
create unique index journey_one on outbox.journey ((case kind when 'backfill' then 'rebuild' else kind end), subject)
  where kind <> 'verify' and started_at is not null and ended_at is null;

create table outbox.replay (
  subscription text     not null references outbox.subscription on delete cascade,
  journey      bigint   not null references outbox.journey on delete cascade,
  lane         smallint not null,
  pos          bigint   not null,                 -- everything up to here was sent again, or need not be
  -- where the live cursor was; null: what it delivers meanwhile is sent again too
  stop         bigint,
  met          boolean  not null default false,   -- the live cursor was reached
  sent         bigint   not null default 0,
  superseded   bigint   not null default 0,
  failed       bigint   not null default 0,
  primary key (subscription, journey, lane)
) with (fillfactor = 50);
