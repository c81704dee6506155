-- Bulk imports: who brought what, when, and what became of it. A best-effort import notes each batch in
-- the transaction that wrote it, so that a repeated request goes on where a dead process stopped.

create table hermod.import (
  id            uuid primary key default gen_random_uuid(),
  state         text not null default 'running' check (state in ('running', 'succeeded', 'failed')),
  mode          text not null check (mode in ('all', 'best-effort')),
  -- The Idempotency-Key; given back when the import fails, because then nothing was written.
  principal     text not null,
  key           text check (length(key) between 1 and 255),
  fingerprint   text not null,
  rows_total    bigint not null check (rows_total >= 0),
  -- The last row that was looked at; what comes after it is still to do.
  row_done      bigint not null default 0,
  rows_imported bigint not null default 0,
  rows_failed   bigint not null default 0,
  errors        jsonb not null default '[]' check (jsonb_typeof(errors) = 'array'),
  reason        text,
  -- As in the audit trail: it outlives people and refers to nobody.
  actor_id      bigint,
  identity      text not null,
  -- Raised by whoever takes over from a process that is no longer alive.
  attempt       integer not null default 1,
  alive_at      timestamptz not null default clock_timestamp(),
  started_at    timestamptz not null default clock_timestamp(),
  ended_at      timestamptz,
  check ((state = 'running') = (ended_at is null)),
  check (rows_imported + rows_failed <= rows_total)
);
create unique index import_key on hermod.import (principal, key) where key is not null;
create index import_started on hermod.import (started_at desc, id desc);
