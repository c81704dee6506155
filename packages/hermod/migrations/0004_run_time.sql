-- Subscriptions that come and go while workers run: the kind of sink a definition names, and what workers need to
-- notice changes without reading every row at every heartbeat.

-- `kind`: null = declared in code. `changed_in`: the transaction that last changed what workers must know.
alter table outbox.subscription
  add column kind       text check (kind ~ '^[a-z][a-z0-9_.:-]{0,62}$'),
  add column changed_in xid8 not null default pg_current_xact_id();
create index subscription_changed on outbox.subscription (changed_in);

-- What a kind of sink is given. A table of its own: there may be secrets in it, and readers must not see them.
create table outbox.sink_settings (
  subscription text  primary key references outbox.subscription on delete cascade,
  settings     jsonb not null check (jsonb_typeof(settings) = 'object' and octet_length(settings::text) <= 32768)
);

-- Removed ones, so that workers learn of it. A name that is used again continues above this revision.
create table outbox.removed (
  subscription text        primary key,
  revision     integer     not null,
  changed_in   xid8        not null default pg_current_xact_id(),
  at           timestamptz not null default outbox.clock()
);
create index removed_changed on outbox.removed (changed_in);

-- Kinds of sinks this worker has. `listed_in`: the transaction that last changed its list of subscriptions.
alter table outbox.worker
  add column kinds     text[] not null default '{}',
  add column listed_in xid8   not null default pg_current_xact_id();

-- For the one look that a worker takes on behalf of all its idle subscriptions.
create index subscription_held on outbox.subscription (name) where held_cause is not null;
create index subscription_ledger on outbox.subscription (name) where ledger;
create index lane_again on outbox.lane (again_at) where again_at is not null;
