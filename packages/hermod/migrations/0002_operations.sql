-- What operating needs: who was granted what, which routines are installed, what upkeep, the auditor and `watch`
-- remember.

-- One row: the routines that were applied last (`routines/*.sql`), and the version of the library they came with.
create table outbox.routine (
  only_row   boolean     primary key default true check (only_row),
  hash       text        not null,
  version    text        not null,
  applied_at timestamptz not null default outbox.clock()
);

-- Prefixes of installed roles: `hermod` stands for hermod_producer, hermod_worker, hermod_reader, hermod_admin.
create table outbox.grantee (
  prefix text primary key check (prefix ~ '^[a-z][a-z0-9_]{0,40}$')
);

-- How far the auditor has looked: everything visible in `snapshot` was in the log or filed.
create table outbox.audited (
  only_row boolean     primary key default true check (only_row),
  at       timestamptz not null,
  pos      bigint      not null,
  snapshot pg_snapshot not null
);

-- When each piece of upkeep last had its turn.
create table outbox.upkeep (piece text primary key, at timestamptz not null);

-- What upkeep remembers of a leaf.
create table outbox.leaf (
  name          text primary key,
  frozen_at     timestamptz,
  archived_as   text,
  archived_to   bigint,   -- positions of the leaf below this one are in the archive
  archived_rows bigint,
  emptied_at    timestamptz
);

-- What journeys (replay, rebuild, a kept generation) still need: every position above `pos`.
create table outbox.keep (
  holder text        primary key,
  pos    bigint      not null,
  since  timestamptz not null default outbox.clock()
);

-- Tables whose rows become events.
create table outbox.watched (
  relation     oid         primary key,
  name         text        not null,
  options      jsonb       not null,
  installed_at timestamptz not null default outbox.clock(),
  installed_by text        not null default session_user
);
