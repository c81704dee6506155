-- The schema after all migrations, for reading and for comparing; written by schema-dump.test.ts.

create sequence outbox.attempt_id as bigint cache 1;

create sequence outbox.audit_id_seq as bigint cache 1;

create sequence outbox.event_id as bigint cache 1;

create sequence outbox.journey_id_seq as bigint cache 1;

create sequence outbox.step_id_seq as bigint cache 1;

create table outbox.attempt (
  id bigint not null default nextval('outbox.attempt_id'::regclass),
  call bigint not null,
  subscription text not null,
  lane smallint not null,
  from_pos bigint not null,
  to_pos bigint not null,
  pos bigint,
  started_at timestamp with time zone not null,
  duration_ms integer not null,
  worker text not null,
  outcome text not null,
  delivered integer not null default 0,
  superseded integer not null default 0,
  failed integer not null default 0,
  dry_run boolean not null default false,
  code text,
  error text,
  constraint attempt_pkey PRIMARY KEY (id)
) partition by RANGE (id);
create index attempt_pos on only outbox.attempt using btree (subscription, pos) where (pos is not null);
create index attempt_range on only outbox.attempt using btree (subscription, lane, to_pos);
create index attempt_started_at on only outbox.attempt using brin (started_at) with (pages_per_range='16', autosummarize='on');

create table outbox.audit (
  id bigint not null generated always as identity,
  at timestamp with time zone not null default outbox.clock(),
  request_id text not null,
  actor text not null,
  action text not null,
  subscription text,
  event_id bigint,
  pos bigint,
  reason text,
  count bigint,
  before jsonb,
  after jsonb,
  constraint audit_request_id_key UNIQUE (request_id),
  constraint audit_pkey PRIMARY KEY (id)
);
create index audit_at on outbox.audit using btree (at);
create index audit_event on outbox.audit using btree (event_id) where (event_id is not null);

create table outbox.audited (
  only_row boolean not null default true,
  at timestamp with time zone not null,
  pos bigint not null,
  snapshot pg_snapshot not null,
  constraint audited_pkey PRIMARY KEY (only_row),
  constraint audited_only_row_check CHECK (only_row)
);

create table outbox.cursor (
  subscription text not null,
  lane smallint not null,
  fence bigint not null,
  pos bigint not null,
  delivered bigint not null default 0,
  constraint cursor_pkey PRIMARY KEY (subscription, lane, fence, pos)
);

create table outbox.delivery (
  subscription text not null,
  lane smallint not null,
  pos bigint not null,
  event_id bigint not null,
  aggregate_type text not null,
  aggregate_id text not null,
  hash integer not null,
  state text not null,
  attempts integer not null default 0,
  attempts_max integer not null default 6,
  next_attempt_at timestamp with time zone,
  first_failed_at timestamp with time zone,
  updated_at timestamp with time zone not null,
  fence bigint not null default 0,
  code text,
  error text,
  fingerprint text,
  reason text,
  receipt json,
  correction json,
  event json,
  constraint delivery_pkey PRIMARY KEY (subscription, lane, pos),
  constraint delivery_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE,
  constraint delivery_attempts_check CHECK ((attempts >= 0)),
  constraint delivery_check CHECK (((state = ANY (ARRAY['pending'::text, 'retrying'::text])) = (next_attempt_at IS NOT NULL))),
  constraint delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'retrying'::text, 'sending'::text, 'delivered'::text, 'unknown'::text, 'dead'::text, 'discarded'::text])))
);
create index delivery_aggregate on outbox.delivery using btree (subscription, lane, hash) where (state <> 'delivered'::text);
create index delivery_due on outbox.delivery using btree (subscription, lane, next_attempt_at) where (next_attempt_at is not null);
create index delivery_event on outbox.delivery using btree (event_id);
create index delivery_state on outbox.delivery using btree (subscription, state, updated_at);

create table outbox.event (
  xid xid8 not null default pg_current_xact_id(),
  id bigint not null default nextval('outbox.event_id'::regclass),
  created_at timestamp with time zone not null default outbox.clock(),
  not_before timestamp with time zone,
  bytes integer not null,
  version smallint not null default 1,
  type text not null,
  aggregate_type text not null,
  aggregate_id text not null,
  key text,
  headers json,
  payload json not null,
  constraint event_pkey PRIMARY KEY (id)
) partition by RANGE (id);
create index event_scheduled on only outbox.event using btree (xid) where (not_before is not null);
create index event_xid on only outbox.event using btree (xid);

create table outbox.filter (
  subscription text not null,
  from_pos bigint not null,
  types text[] not null,
  aggregates text[],
  constraint filter_pkey PRIMARY KEY (subscription, from_pos),
  constraint filter_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE
);

create table outbox.grantee (
  prefix text not null,
  constraint grantee_pkey PRIMARY KEY (prefix),
  constraint grantee_prefix_check CHECK ((prefix ~ '^[a-z][a-z0-9_]{0,40}$'::text))
);

create table outbox.idempotency (
  key text not null,
  event_id bigint not null,
  hash bytea not null,
  created_at timestamp with time zone not null default outbox.clock(),
  constraint idempotency_pkey PRIMARY KEY (key),
  constraint idempotency_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 200)))
);
create index idempotency_created_at on outbox.idempotency using btree (created_at);

create table outbox.inbox (
  consumer text not null,
  message_id text not null,
  at timestamp with time zone not null default outbox.clock(),
  constraint inbox_pkey PRIMARY KEY (consumer, message_id),
  constraint inbox_consumer_check CHECK (((octet_length(consumer) >= 1) AND (octet_length(consumer) <= 128))),
  constraint inbox_message_id_check CHECK (((octet_length(message_id) >= 1) AND (octet_length(message_id) <= 512)))
);
create index inbox_at on outbox.inbox using btree (at);

create table outbox.journey (
  id bigint not null generated always as identity,
  kind text not null,
  subject text not null,
  state text not null default 'queued'::text,
  phase text,
  plan jsonb not null default '{}'::jsonb,
  progress jsonb not null default '{}'::jsonb,
  result jsonb,
  error text,
  asked text not null default 'run'::text,
  owner text,
  owner_until timestamp with time zone,
  requested_by text not null,
  reason text,
  created_at timestamp with time zone not null default outbox.clock(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  updated_at timestamp with time zone not null default outbox.clock(),
  constraint journey_pkey PRIMARY KEY (id),
  constraint journey_asked_check CHECK ((asked = ANY (ARRAY['run'::text, 'pause'::text, 'cancel'::text]))),
  constraint journey_check CHECK (((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])) = (ended_at IS NOT NULL))),
  constraint journey_check1 CHECK ((((state = 'running'::text) = (owner IS NOT NULL)) AND ((owner IS NULL) = (owner_until IS NULL)))),
  constraint journey_kind_check CHECK ((kind = ANY (ARRAY['replay'::text, 'rebuild'::text, 'verify'::text, 'backfill'::text]))),
  constraint journey_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'paused'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text]))),
  constraint journey_subject_check CHECK (((octet_length(subject) >= 1) AND (octet_length(subject) <= 200)))
) with (fillfactor=50);
create unique index journey_one on outbox.journey using btree ((
case kind
    when 'backfill'::text then 'rebuild'::text
    else kind
end), subject) where ((kind <> 'verify'::text) and (started_at is not null) and (ended_at is null));
create index journey_open on outbox.journey using btree (id) where (ended_at is null);
create index journey_subject on outbox.journey using btree (subject, id);

create table outbox.keep (
  holder text not null,
  pos bigint not null,
  since timestamp with time zone not null default outbox.clock(),
  constraint keep_pkey PRIMARY KEY (holder)
);

create table outbox.kind (
  code smallint not null,
  type text not null,
  aggregate_type text not null,
  constraint kind_pkey PRIMARY KEY (type, aggregate_type)
);

create table outbox.lane (
  subscription text not null,
  lane smallint not null,
  owner text,
  fence bigint not null default 0,
  lease_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
  parked jsonb,
  again_at timestamp with time zone,
  again_from bigint,
  again_since bigint,
  again_hashes integer[] not null default '{}'::integer[],
  constraint lane_pkey PRIMARY KEY (subscription, lane),
  constraint lane_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE,
  constraint lane_parked_check CHECK (((length((parked ->> 'handle'::text)) >= 1) AND (length((parked ->> 'handle'::text)) <= 2000)))
) with (fillfactor=50);
create index lane_again on outbox.lane using btree (again_at) where (again_at is not null);

create table outbox.leaf (
  name text not null,
  frozen_at timestamp with time zone,
  archived_as text,
  archived_to bigint,
  archived_rows bigint,
  emptied_at timestamp with time zone,
  constraint leaf_pkey PRIMARY KEY (name)
);

create table outbox.log (
  pos bigint not null,
  event_id bigint not null,
  hash integer not null,
  bytes integer not null,
  lane smallint not null,
  kind smallint not null,
  constraint log_pkey PRIMARY KEY (lane, pos)
) partition by RANGE (pos);
create index log_event_id on only outbox.log using brin (event_id) with (pages_per_range='16', autosummarize='on');

create table outbox.migration (
  version integer not null,
  name text not null,
  hash text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migration_pkey PRIMARY KEY (version)
);

create table outbox.removed (
  subscription text not null,
  revision integer not null,
  changed_in xid8 not null default pg_current_xact_id(),
  at timestamp with time zone not null default outbox.clock(),
  constraint removed_pkey PRIMARY KEY (subscription)
);
create index removed_changed on outbox.removed using btree (changed_in);

create table outbox.replay (
  subscription text not null,
  journey bigint not null,
  lane smallint not null,
  pos bigint not null,
  stop bigint,
  met boolean not null default false,
  sent bigint not null default 0,
  superseded bigint not null default 0,
  failed bigint not null default 0,
  constraint replay_pkey PRIMARY KEY (subscription, journey, lane),
  constraint replay_journey_fkey FOREIGN KEY (journey) REFERENCES outbox.journey(id) ON DELETE CASCADE,
  constraint replay_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE
) with (fillfactor=50);

create table outbox.routine (
  only_row boolean not null default true,
  hash text not null,
  version text not null,
  applied_at timestamp with time zone not null default outbox.clock(),
  constraint routine_pkey PRIMARY KEY (only_row),
  constraint routine_only_row_check CHECK (only_row)
);

create table outbox.scheduled (
  due timestamp with time zone not null,
  event_id bigint not null,
  constraint scheduled_pkey PRIMARY KEY (due, event_id)
);

create table outbox.setting (
  only_row boolean not null default true,
  lanes smallint not null default 16,
  fenced_id bigint not null default 0,
  covered bigint not null default 0,
  constraint setting_pkey PRIMARY KEY (only_row),
  constraint setting_lanes_check CHECK (((lanes >= 1) AND (lanes <= 256))),
  constraint setting_only_row_check CHECK (only_row)
);

create table outbox.shadow (
  subscription text not null,
  lane smallint not null,
  fence bigint not null,
  pos bigint not null,
  delivered bigint not null default 0,
  constraint shadow_pkey PRIMARY KEY (subscription, lane, fence, pos)
);

create table outbox.sink_settings (
  subscription text not null,
  settings jsonb not null,
  constraint sink_settings_pkey PRIMARY KEY (subscription),
  constraint sink_settings_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE,
  constraint sink_settings_settings_check CHECK (((jsonb_typeof(settings) = 'object'::text) AND (octet_length((settings)::text) <= 32768)))
);

create table outbox.step (
  id bigint not null generated always as identity,
  at timestamp with time zone not null,
  snapshot pg_snapshot not null,
  last_id bigint not null default 0,
  xid xid8 not null default pg_current_xact_id(),
  previous pg_snapshot,
  reached bigint,
  filed_after timestamp with time zone,
  pos bigint not null,
  due_at timestamp with time zone not null,
  due_id bigint not null,
  epoch integer not null,
  timeline integer not null,
  database oid not null,
  system_identifier bigint,
  constraint step_pkey PRIMARY KEY (id)
);
create index step_at on outbox.step using btree (at);
create index step_pos on outbox.step using btree (pos, at);

create table outbox.subscription (
  name text not null,
  revision integer not null,
  definition jsonb not null,
  mode text not null default 'live'::text,
  mode_says text,
  mode_by text,
  mode_since timestamp with time zone not null default outbox.clock(),
  lanes smallint not null,
  ordered boolean not null,
  coalesced boolean not null,
  ledger boolean not null,
  dead_holds boolean not null,
  start_pos bigint not null,
  created_at timestamp with time zone not null default outbox.clock(),
  served_at timestamp with time zone not null default outbox.clock(),
  held_cause text,
  held_since timestamp with time zone,
  held_says text,
  held_count integer not null default 0,
  probe_at timestamp with time zone,
  probe_owner text,
  kind text,
  changed_in xid8 not null default pg_current_xact_id(),
  constraint subscription_pkey PRIMARY KEY (name),
  constraint subscription_check CHECK ((((held_cause IS NULL) = (held_since IS NULL)) AND ((held_cause IS NULL) = (probe_at IS NULL)))),
  constraint subscription_held_cause_check CHECK ((held_cause = ANY (ARRAY['unavailable'::text, 'misconfigured'::text]))),
  constraint subscription_kind_check CHECK ((kind ~ '^[a-z][a-z0-9_.:-]{0,62}$'::text)),
  constraint subscription_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'dry-run'::text, 'paused'::text]))),
  constraint subscription_name_check CHECK ((name ~ '^[a-z][a-z0-9_.:-]{0,62}$'::text)),
  constraint subscription_revision_check CHECK ((revision >= 1))
);
create index subscription_changed on outbox.subscription using btree (changed_in);
create index subscription_held on outbox.subscription using btree (name) where (held_cause is not null);
create index subscription_ledger on outbox.subscription using btree (name) where ledger;

create table outbox.upkeep (
  piece text not null,
  at timestamp with time zone not null,
  constraint upkeep_pkey PRIMARY KEY (piece)
);

create table outbox.watched (
  relation oid not null,
  name text not null,
  options jsonb not null,
  installed_at timestamp with time zone not null default outbox.clock(),
  installed_by text not null default SESSION_USER,
  constraint watched_pkey PRIMARY KEY (relation)
);

create table outbox.worker (
  id text not null,
  name text not null,
  host text not null,
  pid integer not null,
  version text not null,
  subscriptions text[] not null,
  draining boolean not null default false,
  started_at timestamp with time zone not null,
  heartbeat_at timestamp with time zone not null,
  kinds text[] not null default '{}'::text[],
  listed_in xid8 not null default pg_current_xact_id(),
  constraint worker_pkey PRIMARY KEY (id)
) with (fillfactor=50);

-- leaf attempt_0000000000000000001 of attempt FOR VALUES FROM ('1') TO ('1000001')
-- leaf attempt_default of attempt DEFAULT
-- leaf event_0000000000000000001 of event FOR VALUES FROM ('1') TO ('1000001')
-- leaf event_default of event DEFAULT
-- leaf log_0000000000000000001 of log FOR VALUES FROM ('1') TO ('1000001')

create view outbox.partition as
 SELECT parent.relname AS parent,
    leaf.relname AS name,
    leaf.oid AS leaf,
    (regexp_match(bound.says, 'FROM \(''?(-?\d+)''?\)'::text))[1]::bigint AS from_value,
    (regexp_match(bound.says, 'TO \(''?(-?\d+)''?\)'::text))[1]::bigint AS to_value
   FROM pg_inherits i
     JOIN pg_class parent ON parent.oid = i.inhparent
     JOIN pg_class leaf ON leaf.oid = i.inhrelid
     CROSS JOIN LATERAL pg_get_expr(leaf.relpartbound, leaf.oid) bound(says)
  WHERE (i.inhparent = ANY (ARRAY['outbox.event'::regclass::oid, 'outbox.log'::regclass::oid, 'outbox.attempt'::regclass::oid])) AND leaf.relkind = 'r'::"char";

create view outbox.status as
 SELECT e.id AS event_id,
    w.pos,
    x.subscription,
    x.state,
    x.attempts,
    x.next_attempt_at,
    x.code,
    d.error,
    x.blocked_by_pos,
    x.first_failed_at,
    x.updated_at,
    e.type,
    e.aggregate_type,
    e.aggregate_id
   FROM outbox.event e
     CROSS JOIN LATERAL outbox.whereabouts(e.id, e.xid, e.not_before) w(stage, pos, lane, hash)
     CROSS JOIN LATERAL outbox.states_of(w.stage, w.pos, w.lane, w.hash, e.id, e.type, e.aggregate_type, e.aggregate_id, e.created_at) x(subscription, lane, state, attempts, next_attempt_at, first_failed_at, updated_at, code, blocked_by_pos)
     LEFT JOIN outbox.delivery d ON d.event_id = e.id AND d.subscription = x.subscription
UNION ALL
 SELECT d.event_id,
    d.pos,
    d.subscription,
        CASE d.state
            WHEN 'sending'::text THEN 'processing'::text
            ELSE d.state
        END AS state,
    d.attempts,
    d.next_attempt_at,
    d.code,
    d.error,
    NULL::bigint AS blocked_by_pos,
    d.first_failed_at,
    d.updated_at,
    d.event ->> 'type'::text AS type,
    d.aggregate_type,
    d.aggregate_id
   FROM outbox.delivery d
  WHERE NOT (EXISTS ( SELECT
           FROM outbox.event e
          WHERE e.id = d.event_id));

function outbox.abandon(sub text, who text, lanes smallint[], fences bigint[]) → void
  sql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 31a5cd340612111f8cb68fecf0c92c18

function outbox.add_ahead(of_parent text, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 1af51d23b3d8fc53946d49833347f480

function outbox.add_partition(parent text, from_value bigint, to_value bigint) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 87803dacccd1405e63c44a26bfbfc6f1

function outbox.add_to_decision(request text, more bigint[], left_out bigint, ended boolean) → void
  sql volatile security definer set search_path=pg_catalog, pg_temp -- 2e1620f1a076da3fbbfa85ed45f180d6

function outbox.again_done(sub text, who text, of_lane smallint, of_fence bigint) → void
  sql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- 6195270a4f3daf4362efde60149836f5

function outbox.again_wanted(sub text, of_lane smallint, rows_max integer, scan_max integer, OUT hashes integer[], OUT since bigint, OUT up_to bigint) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 97ab043f3f01c413209f23cfdcc2f60b

function outbox.again_window(sub text, of_lane smallint, wanted integer[], after bigint, up_to bigint, rows_max integer, OUT through bigint, OUT positions bigint[], OUT ids bigint[], OUT hashes integer[], OUT aggregates text[]) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- d795570c172b92fc8b0144fcbc02a92a

function outbox.apply_grants() → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- ea7125aa66eca1570863665a0974790f

function outbox.ask_journey(of_id bigint, want text) → outbox.journey
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 21be16cbd8c9ff42f6190b4820a41627

function outbox.assert_definable(sub text, expected integer, known outbox.subscription) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 870c66c955f3b8d2f57920e53d709ef0

function outbox.assert_event(type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) → void
  plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp -- 6a4a217930f9442a58cccfdfa95b2627

function outbox.assert_head(last outbox.step, head bigint, known_head bigint) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- df116b86900286345bfbe3ea9bb15772

function outbox.assert_log_fits(accept_missing boolean, OUT orphans bigint) → bigint
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 905639b30fb7872abe27f34365699058

function outbox.assert_payload(payload text) → void
  plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp -- 6b01cb1df9ea0e4fb9bc5e72608b5fdb

function outbox.assert_same_database(last outbox.step, system_identifier bigint, database oid, cur pg_snapshot) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 01f8be9338e3812020d6363922e62529

function outbox.assert_sequencer() → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 0c83b79eb8c2adb9022c8fe2cc692a48

function outbox.attempt_holder(of_name text, to_value bigint, days numeric) → text
  plpgsql volatile set search_path=pg_catalog, pg_temp -- f3e307b50d5318d460c2cdb10c1c927f

function outbox.audit_policy(of_action text, of_subscription text, what text, rows bigint) → void
  sql volatile -- 30aae3b24347d8237e9f7ca8047537c8

function outbox.batch_end(s outbox.subscription, of_lane smallint, after bigint) → bigint
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 2f603bf66d05112ee5884c0625fa9294

function outbox.beat(of_id text, of_name text, of_host text, of_pid integer, of_version text, subs text[], of_kinds text[], is_draining boolean, alive_ms integer, since pg_snapshot, asked text[]) → TABLE(seen text, unlisted boolean, others jsonb, changed jsonb, removed text[])
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- c82386ddae476f51b984bcc040e0979d

function outbox.begin_replay(of_journey bigint) → void
  sql volatile -- ceefaf7ce1189ec17459fd1b70ea9294

function outbox.blocked_of(sub text, scan_max integer, OUT blocked bigint, OUT waiting bigint, OUT waiting_pending bigint, OUT estimated boolean) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 7312cd480f0be9880cbfcc2a3f8daffe

function outbox.capture() → trigger
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set TimeZone=UTC -- 86de22b04aca07ca9eb63d7cb33d7251

function outbox.capture_body(o jsonb, image jsonb) → jsonb
  sql immutable parallel safe -- 2930fbefa10813f93003228a4d1fbac3

function outbox.capture_key(o jsonb, image jsonb) → jsonb
  sql immutable parallel safe -- 85192238661f09538c3f1636bb395600

function outbox.capture_row(o jsonb, event text, image jsonb, body jsonb) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 9e94cdc95c92c240ce8faa6695348ba7

function outbox.capture_truncate() → trigger
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 0ceb495867be34f94bfc4d93a36606aa

function outbox.claim(sub text, rev integer, who text, lanes_max integer, lease_ms integer, call_ms integer) → TABLE(lane smallint, fence bigint, pos bigint, again_ms integer)
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 78115802f2f6cad8a0f3abe14adbea77

function outbox.clock() → timestamp with time zone
  sql volatile parallel safe -- 94fc2f526401760006cf0a2bd7692e58

function outbox.copy_of(e outbox.event) → json
  sql stable -- 7748c05b967d007ae65865b41da4b142

function outbox.copy_open(from_value bigint, to_value bigint, rows_max integer) → integer
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 9d79c3d523c563729423bba69e6f30cf

function outbox.count_missing(is_full boolean, OUT missing bigint, OUT first_id bigint, OUT step_id bigint) → record
  plpgsql stable set search_path=pg_catalog, pg_temp -- 1569840212834df873d5cdba99a37b66

function outbox.cursor_of(sub text, lane smallint, OUT fence bigint, OUT pos bigint, OUT delivered bigint) → record
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- c880d03841ff95ff469d13f556eda342

function outbox.dead_group(d outbox.delivery) → text
  sql immutable parallel safe -- 4ee1fd1bbb80f035c99e653e84f4e8c5

function outbox.decide(sub text, verb text, lanes smallint[], positions bigint[], states text[], forced boolean, why text, OUT done bigint[], OUT superseded bigint[]) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off -- e8c807e5fcc2cc10f853b290e0cf1b64

function outbox.define(sub text, expected integer, of_kind text, settings jsonb, def jsonb, types text[], aggregates text[], lane_count smallint, ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text, start_pos bigint) → integer
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 8c594343aebf4ed2e25056fe3c0785c7

function outbox.discard_row(s outbox.subscription, d outbox.delivery, why text, now timestamp with time zone, reach jsonb) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- a93c9bb3c96da581053d69839447b6d9

function outbox.drop_leaf(of_parent text, of_name text) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 452b1e9a7ed18b492fc29252568ffa9d

function outbox.emit(type text, aggregate_type text, aggregate_id text, payload json, headers json, not_before timestamp with time zone, key text, version integer) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 3b0c72b8a07ac43cc5d1970cb23a30bf

function outbox.emit_keyed(types text[], aggregate_types text[], aggregate_ids text[], payloads text[], versions smallint[], headers text[], not_before timestamp with time zone[], keys text[]) → SETOF bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- cfe7f41e98d3301a5e54d517640a5ae7

function outbox.emit_many(types text[], aggregate_types text[], aggregate_ids text[], payloads text[], versions smallint[], headers text[], not_before timestamp with time zone[], keys text[]) → SETOF bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- a85e2f286be1da77e1d8ab1ed0667983

function outbox.emit_one(type text, aggregate_type text, aggregate_id text, payload text, version smallint, headers text, not_before timestamp with time zone) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- e9f1a7f844b53bdaa00789e473ff8a7c

function outbox.empty_leaf(of_parent text, of_name text, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 6a53d8c632b3cb8efbd21497b049b894

function outbox.end_journey(of_id bigint, who text, to_state text, of_result jsonb, says text) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 62b503cf3a359c89ec35973f962c5da2

function outbox.enlist(sub text, rev integer, who text, lanes smallint[], fences bigint[], count_max integer, scan_max integer, attempts_max integer) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 43e42788bcd33df085d7ef1ed00a41cb

function outbox.enlist_again(sub text, rev integer, who text, of_journey bigint, of_lane smallint, of_fence bigint, from_pos bigint, to_pos bigint, positions bigint[], ids bigint[], hashes integer[], attempts_max integer) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- 9788b0f3320f089803278d4e23c8353e

function outbox.enlist_rows(sub text, of_lane smallint, positions bigint[], ids bigint[], hashes integer[], types text[], aggregates text[], attempts_max integer, again boolean) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 5e100ba2952d0530a36fd83e736d03c4

function outbox.ensure_log_partition(from_pos bigint, to_pos bigint) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=100ms -- 9267dd48c70e7f4106257dffb8042f6e

function outbox.event_holder(of_name text, from_value bigint, to_value bigint, seen pg_snapshot) → text
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 83530bbbe770eb89b3517389c875f1d0

function outbox.event_problem(type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) → text
  sql immutable parallel safe -- 4a446457b51ae2286f3e14dc0e48b39f

function outbox.expire_row(s outbox.subscription, d outbox.delivery) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 42ca61f9522c35777e2fc43224e7f96f

function outbox.expired(days numeric, rows_max integer) → TABLE(subscription text, lane smallint, pos bigint, updated_at timestamp with time zone, line text)
  sql stable security definer set search_path=pg_catalog, pg_temp -- 7a61e95b22f739cd791e4bcad78371fe

function outbox.fence_off(up_to bigint) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 62e61239c02381b5f147f88f3cfb8679

function outbox.fields(pos bigint, id bigint, kind smallint, created_at timestamp with time zone, aggregate_id text, version smallint, mark text, type text, aggregate_type text, key text, headers json) → text
  sql stable parallel safe -- c21f88f462ca831632728e96e7003ecb

function outbox.file_scheduled(lower pg_snapshot, upper pg_snapshot, late xid8[], fenced bigint, limit_at timestamp with time zone) → integer
  plpgsql volatile set search_path=pg_catalog, pg_temp -- ab11d8a5ddb00af4201d162d57fd9393

function outbox.follower(d outbox.delivery, up_to bigint, OUT pos bigint, OUT event_id bigint) → record
  sql stable -- 3e8c9e60c2df2073cb4f5db35765fd00

function outbox.followers(d outbox.delivery, up_to bigint, rows_max integer) → TABLE(pos bigint, event_id bigint)
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 1041a56a258127c5299c8dc3d051dc48

function outbox.forget_cursors() → trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp -- a570d17c5b4e6b48dbd5470960efeb9c

function outbox.grant_role(prefix text, role text) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 3cea581f82099e4873632219b61712cb

function outbox.has_unseen(of_name text, seen pg_snapshot) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp -- d0f6a8ccea913dfbb7e1a89e234cee05

function outbox.hash(aggregate_type text, aggregate_id text) → integer
  sql immutable parallel safe -- a154c96d4714a1569d90d155932b6c43

function outbox.headers_text(headers text) → text
  plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp -- e7a92f5e7b76dc260e9a44cdd890bdc7

function outbox.heard(sub text, at_pos bigint, of_type text, of_aggregate_type text) → boolean
  sql stable -- 5a74d61d90010e1bd3bba2f30e45d041

function outbox.highest_id() → bigint
  sql stable -- 7516f0c75bbbe7b4e7c17c42c7d94298

function outbox.highest_pos() → bigint
  sql stable -- 0696d4e7aac87c6b2e45f4f5be3b07fa

function outbox.hold(sub text, cause text, says text, after_ms integer, cap_ms integer, who text) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- 8b6dd55895b43362349c5f787d37e594

function outbox.holders() → text
  plpgsql stable set search_path=pg_catalog, pg_temp -- 1ca7ad9afe1d85ba7b0067c4fc374703

function outbox.identity(OUT system_identifier bigint, OUT database oid, OUT timeline integer) → record
  plpgsql stable set search_path=pg_catalog, pg_temp -- 00cd72ea06eaf871215f1597d7b8d402

function outbox.interrupt(s outbox.subscription, d outbox.delivery) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp -- c56ca38cf4d5a4ea1e96ae50ce4f6768

function outbox.interrupted(owner text) → text
  sql immutable parallel safe -- 08a932e3575631a3fdf775a2acc2837f

function outbox.is_deep(payload text) → boolean
  plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp -- a0c18ef0597d241feff02074d8ff215d

function outbox.is_event(type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) → boolean
  sql immutable parallel safe -- 16336dc079fb63768b9bbd0f78ab8458

function outbox.is_over(until timestamp with time zone, now timestamp with time zone) → boolean
  sql stable parallel safe -- f55b0c74e39958785d2be135d0546381

function outbox.is_plain(payload text, headers text) → boolean
  sql immutable parallel safe -- d428427c5155cb52c6bc2b3abcd3bc08

function outbox.keep_journey(of_id bigint, who text, lease_ms integer, of_phase text, more jsonb) → text
  sql volatile -- 69163b7e4cc7c0c84b8a285a1265ab61

function outbox.kept_range(OUT first_pos bigint, OUT last_pos bigint) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- 9df96fb3c562096066f353c0ecb4cc64

function outbox.key_text(key jsonb, image jsonb) → text
  sql immutable parallel safe -- 5badc737980aacf21c05a4002f37eed9

function outbox.kind_code(of_type text, of_aggregate_type text) → smallint
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 056c6efc0864f116c536b0b37464b701

function outbox.kinds(types text[], aggregates text[]) → smallint[]
  sql stable -- deccd1d006490cbc20752137eb763213

function outbox.lacks_copy(from_value bigint, to_value bigint) → boolean
  sql volatile -- b6ac5dead4ebd5a5f073aee0a8d97053

function outbox.lag_of(sub text, scan_max integer, OUT head bigint, OUT cursor_pos bigint, OUT delivered bigint, OUT past bigint, OUT processing bigint, OUT estimated boolean, OUT oldest_pos bigint) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- a158fa2297cf776dd98a8d740cf85cb9

function outbox.lane_budgets(lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean, count_max integer, bytes_max bigint) → TABLE(lane smallint, after bigint, budget integer, bytes bigint)
  sql stable -- 3022cd2a6f2c394159de3d5716eebb77

function outbox.lane_of(hash integer, lanes smallint) → smallint
  sql immutable parallel safe -- 54078025fb6098daa1f8f85145a2477a

function outbox.lane_rows(of_lane smallint, after bigint, until bigint, kinds smallint[], budget integer, scan_max integer) → TABLE(pos bigint, event_id bigint, kind smallint, bytes integer, before bigint)
  sql stable -- 53df7d419609ced9e8daf28e7f4f66d0

function outbox.last_due(now timestamp with time zone) → timestamp with time zone
  sql stable parallel safe -- 81a37222e18481c0e3ea75352c156cde

function outbox.last_id() → bigint
  sql volatile -- 64e37a90fd8a826d73745d9ff66101e0

function outbox.last_value(parent text) → bigint
  sql volatile -- 3bbd04f6705b58adc9c17f070a5bc41c

function outbox.later_events(lanes smallint[], hashes integer[], positions bigint[]) → TABLE(hash integer, pos bigint, event_id bigint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 9a932441e075aacb33ac04f7b67cf8be

function outbox.later_rows(lanes smallint[], log_lanes smallint[], hashes integer[], after bigint[], up_to bigint[], rows_max integer) → TABLE(lane smallint, head bigint, pos bigint, event_id bigint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 946ee67bea7f7e5838f48a8c48a8c61b

function outbox.later_span(sub text, log_lanes smallint[], hashes integer[], after bigint[], up_to bigint[]) → TABLE(head bigint, first bigint, last bigint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- cddde57230f665c94a45b14d420bfb61

function outbox.leaf_range(of_parent text, of_name text, OUT from_value bigint, OUT to_value bigint) → record
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 7a01a9450c17145ace547d91b4900dc7

function outbox.leaf_rows(of_parent text, days numeric) → bigint
  sql volatile -- 10fc90dee00167a54b176ca61e1bb2ba

function outbox.leased(sub text, who text, lanes smallint[], fences bigint[]) → TABLE(lane smallint, pos bigint)
  sql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 04d475e868efafeb302840d718df56d3

function outbox.leave(of_id text) → void
  sql volatile -- a8ee39981b78c70beb61fc9fed597d3c

function outbox.leaves() → TABLE(parent text, name text, from_value bigint, to_value bigint, closed boolean, frozen boolean, archived_as text, emptied boolean)
  sql volatile security definer set search_path=pg_catalog, pg_temp -- 4edd53a74e819fafbafcbd0b0483a272

function outbox.listened(sub text, after bigint, up_to bigint) → TABLE(from_pos bigint, until bigint, types text[], aggregates text[], kinds smallint[])
  sql stable -- 078f067ca464854d7f28fcc1a4e07428

function outbox.lock(aggregate_types text[], aggregate_ids text[]) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 5188544dbe197357e63e59aafd34f0db

function outbox.lock_events() → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 1643448e4969f7fefd5f4c377ef67c17

function outbox.lock_leaf(of_name text) → boolean
  sql volatile -- ced1c4b06fb0f6ac0d736b636df4ed9b

function outbox.lock_steps() → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 40561dcaafbe28ccbd77a55cabbd29fd

function outbox.log_at(of_pos bigint) → SETOF outbox.log
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- b90693f3a41560c0423627afd66c1e6f

function outbox.log_cut(of_name text, days numeric) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- fc63e565818684eec3695c697bf59ddb

function outbox.log_first(of_name text) → bigint
  plpgsql stable security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off set enable_bitmapscan=off -- cb590981e0545748c212b64cba2a6367

function outbox.log_follower(of_name text, to_value bigint) → text
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 429d754960af721630bbe49603e55b6d

function outbox.log_holder(of_name text, to_value bigint, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 9c02f1ace805db46d3b57582316c32dc

function outbox.log_lanes(s outbox.subscription, of_lane smallint, doc_hash integer) → smallint[]
  sql stable -- 6cd809c88c5499623b3cfb61082f49f5

function outbox.log_of(of_event bigint, OUT pos bigint, OUT lane smallint, OUT hash integer) → record
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_indexscan=off set enable_indexonlyscan=off set enable_bitmapscan=on set jit=off set max_parallel_workers_per_gather=0 -- 9a37f613d331032c37e3449ce815d6dc

function outbox.log_reader(of_name text, to_value bigint) → text
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 13d12364c1d2224174549edeaac97c6d

function outbox.log_since() → timestamp with time zone
  sql stable -- 4e1aebcd1e3f53fc754616d239d9de18

function outbox.long_held(rels oid[]) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp -- c46482b475c395034171425d9937bb39

function outbox.look(known bigint, rows_max integer, subs text[], heard bigint[]) → TABLE(head bigint, upto bigint, kinds smallint[], waiting text[], clear text[])
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 5fb229baabcbd2d5abf361f7119f4e6f

function outbox.mark(s outbox.subscription, at_lane smallint, of_type text, of_id text) → text
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- e3224a1f9d41af6cb10e6011fcfe4718

function outbox.matches(patterns text[], type text) → boolean
  sql immutable parallel safe -- 29272b3959e556975cf59e2aed424fb8

function outbox.may_execute(role text, name text, volatility "char", definer boolean) → boolean
  sql immutable parallel safe -- e0576905af1e0abfabaaf7d43af0834c

function outbox.near_ids() → integer
  sql immutable parallel safe -- bd0d42f20a8f2c45b43536f18c6d2723

function outbox.newest(sub text, lanes smallint[], after bigint, up_to bigint, hashes integer[]) → TABLE(hash integer, pos bigint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- c59e059c7024cb9f66ffb3818d80bf1d

function outbox.not_in_log(last outbox.step, fenced bigint) → TABLE(id bigint, not_before timestamp with time zone, type text, aggregate_type text, aggregate_id text, bytes integer, retired boolean)
  sql stable -- 5ff93293b1a9c24446e72f28226d99b4

function outbox.not_superseded(sub text, positions bigint[], ids bigint[], hashes integer[], later bigint[], up_to bigint) → bigint[]
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_nestloop=on set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- d7bf4868b34c75fc8c030bfcf55fb15b

function outbox.note_again(sub text, lanes smallint[], call_ms integer) → void
  sql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off -- eb81d6f5afddd8d1d768b0ccf6564cf6

function outbox.note_audited(step_id bigint) → void
  sql volatile -- ae5e82f24866ec00157110147888b265

function outbox.note_change() → trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp -- d12181f64586d69d129ed8c84b2142cd

function outbox.note_removed() → trigger
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 3c16acd33953c54a0da98b66449df2aa

function outbox.number_due(after_at timestamp with time zone, after_id bigint, limit_at timestamp with time zone, piece integer, base bigint, lane_count smallint, OUT picked integer, OUT numbered integer, OUT last_at timestamp with time zone, OUT last_id bigint) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- 47c17f993ac6dbba49a0efd086114255

function outbox.number_first(lower pg_snapshot, upper pg_snapshot, after bigint, late xid8[], below xid8, fenced bigint, piece integer, base bigint, lane_count smallint, limit_at timestamp with time zone, OUT numbered integer, OUT reached bigint, OUT lanes smallint[], OUT kinds smallint[]) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 94d1e311046d1a727f36f814fdc819d2

function outbox.number_near(lower pg_snapshot, upper pg_snapshot, floor bigint, base bigint, lane_count smallint, limit_at timestamp with time zone, OUT numbered integer, OUT lanes smallint[], OUT kinds smallint[], OUT filed integer) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 48c331a8ddc2cb4de40c9d5a70e3cf92

function outbox.number_next(lower pg_snapshot, upper pg_snapshot, after bigint, piece integer, base bigint, lane_count smallint, limit_at timestamp with time zone, OUT numbered integer, OUT reached bigint) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp -- e29cd587399bd1611a9a34637c7e7f33

function outbox.number_rest(last outbox.step, fenced bigint, base bigint, lane_count smallint, due timestamp with time zone, OUT numbered bigint, OUT filed bigint, OUT retired bigint) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp -- b829ee861b2b0bdc2b1e82a2e810449d

function outbox.number_window(last outbox.step, setting outbox.setting, lower pg_snapshot, upper pg_snapshot, given_out bigint, piece integer, limit_at timestamp with time zone, base bigint, OUT numbered integer, OUT reached bigint, OUT lanes smallint[], OUT kinds smallint[], OUT filed integer, OUT unfinished boolean) → record
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 74598366526cbe530c42ea247d9aab41

function outbox.old_pos(days numeric) → bigint
  sql volatile -- da6131c98193e43a7aac2478f594e272

function outbox.overdue(of_parent text, of_name text, days numeric) → boolean
  plpgsql stable security definer set search_path=pg_catalog, pg_temp -- d69927d6b0e230e167cde24d0ff7dbc1

function outbox.park(sub text, who text, handle text, lanes json) → SETOF smallint
  sql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off -- d900bddc8695b6771d62c190d52393da

function outbox.parked_in(sub text, of_lane smallint) → TABLE(handle text, "from" bigint, "to" bigint, delivered integer, superseded integer, since timestamp with time zone)
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 462ce212a82e54420cb17c0e0a2c908c

function outbox.pass_idle(every_ms integer, rows_max integer) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 66ba8016c651f9fe1e0ad891a92d3712

function outbox.payload_text(mark text, payload json) → text
  sql stable parallel safe -- 03b5b223fa4575d346539e0e5715a9d0

function outbox.picked(positions bigint[], ids bigint[], hashes integer[], kept bigint[]) → TABLE(pos bigint, id bigint, hash integer)
  sql stable set search_path=pg_catalog, pg_temp set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off -- 7403df3f62d3237b339096d84a444e2a

function outbox.probe(sub text, who text, call_ms integer) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- 7ff4a9386ea8f659a610a665c86ecddb

function outbox.prune(event_days numeric, delivery_days numeric, key_days numeric, rows_max integer) → TABLE(what text, rows bigint)
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- c9442221a206f76d09d102e956d207e0

function outbox.prune_archived(sub text, of_lane smallint, positions bigint[], updated timestamp with time zone[], place text) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- c63691d34bd39ce5e72d1c5c7070d1e0

function outbox.prune_deliveries(days numeric, rows_max integer, states text[]) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 1da8ae3f35196d9094f9e234e46b5318

function outbox.rate(of_parent text, last bigint) → numeric
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 76f04f9a888641bdfcc1ea513e61bd06

function outbox.rates(since timestamp with time zone) → TABLE(subscription text, delivered bigint, failed bigint)
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_indexscan=off set enable_bitmapscan=on set jit=off set max_parallel_workers_per_gather=0 -- 9cef46a70c512f5a41403f93f16509ce

function outbox.reach(s outbox.subscription, lanes smallint[], positions bigint[]) → jsonb
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_bitmapscan=off set jit=off -- 7b6459a982eb4e033c3527e379d8a58a

function outbox.read(sub text, rev integer, lanes smallint[], after bigint[], count_max integer, bytes_max bigint, scan_max integer, probing boolean, filled boolean[], rehearsed boolean) → TABLE(lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- f7ddda3d640dbf4572ddd2e0d961188a

function outbox.read_due(s outbox.subscription, lanes smallint[], count_max integer, bytes_max bigint, now timestamp with time zone) → TABLE(lane smallint, fields text, payload text)
  sql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 0380671c8ada6d3798827023f3b56643

function outbox.read_lanes(s outbox.subscription, lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean, kinds smallint[], count_max integer, bytes_max bigint, scan_max integer, marked boolean) → TABLE(lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
  sql stable -- 541ab38905fd9fad3c87cf9724621737

function outbox.read_single(s outbox.subscription, after bigint, until bigint, ends boolean, kinds smallint[], budget integer, bytes_max bigint, scan_max integer, marked boolean) → TABLE(lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- a6d58658a488e786413fc1d0a82652b2

function outbox.rebase(request text, who text, why text, wait_ms integer, accept_missing boolean) → jsonb
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- c799cf5755a62ab3b4e26a3b7f6bcc5d

function outbox.record_attempt(sub text, of_lane smallint, from_pos bigint, to_pos bigint, number bigint, call json, delivered integer, superseded integer, failed integer, rows json, dry_run boolean) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- cffc5ff32abdc64d85078251be202227

function outbox.recover(sub text) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- 5c79919e9e6dbdb8f6702f61de695522

function outbox.refuse(code text, says text, advice text) → void
  plpgsql stable parallel safe set search_path=pg_catalog, pg_temp -- fa797ef72ed5c824843087ea57b73f30

function outbox.refuse_table(target regclass, truncate text, written text[]) → void
  plpgsql volatile -- 1dc76ed4e146fb580d3f3d5c8d0ba297

function outbox.refuse_watch(says text) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 535ac142c3d2ed7be064127a206b4ee8

function outbox.release(sub text, who text, lanes smallint[], fences bigint[]) → void
  sql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off -- f89b8f2a850fe9634c878e736c4c92c9

function outbox.release_blocked(before outbox.subscription, after outbox.subscription) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- fb9e021b328214496726b4864607c167

function outbox.remember_identity() → text
  sql volatile -- 5a24e1225862110904edb009da09b40f

function outbox.remove(sub text) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 7c898208e80d1ae0fb907e2327896922

function outbox.renew(sub text, who text, lanes smallint[], fences bigint[], lease_ms integer) → SETOF smallint
  sql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 4ed7c0b6d5ebd44060aece0bc5d75d2c

function outbox.replay_mark(s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text) → text
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- 3820d0d8323382290b00f7df8ab23be1

function outbox.replay_of(sub text) → bigint
  sql stable set search_path=pg_catalog, pg_temp set enable_seqscan=off -- 779b3a6443db1a895572f263e76927f7

function outbox.replay_read(sub text, rev integer, who text, of_lane smallint, of_fence bigint, positions bigint[], ids bigint[], hashes integer[], sieved bigint, bytes_max bigint) → TABLE(lane smallint, due boolean, through bigint, fields text, payloads text, kind_max smallint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 1eccd3a1e7f4c145b47da2d295fb0093

function outbox.replay_window(sub text, of_lane smallint, plan jsonb, after bigint, up_to bigint, rows_max integer, OUT through bigint, OUT matching integer, OUT positions bigint[], OUT ids bigint[], OUT hashes integer[]) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 33da8382f070301828ca7b2e6782cc13

function outbox.retention_report(days numeric) → TABLE(subscription text, first_pos bigint, since timestamp with time zone, held_leaves integer, held_bytes bigint, served_at timestamp with time zone, mode text)
  sql volatile security definer set search_path=pg_catalog, pg_temp -- 4226f6d8e9a33b32827bd79f651652c7

function outbox.rolled_back(request text, who text, why text) → jsonb
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 843f0592010afed3db206ddc9b6c94f5

function outbox.rows_waiting(head bigint, now timestamp with time zone) → SETOF text
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 30b25657c13558abffd40c0058343cef

function outbox.scan(single boolean, from_lane smallint, after bigint, up_to bigint, rows_max integer) → SETOF outbox.log
  plpgsql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- e80b689b460ec0e8d3c4220f66f48912

function outbox.scanned_through(single boolean, of_lane smallint, after bigint, until bigint, ends boolean, kinds smallint[], budget integer, scan_max integer, got bigint) → TABLE(through bigint)
  sql stable -- 316e9aa2e8c53316ad0584187e212e4f

function outbox.send_next(d outbox.delivery, at_pos bigint, of_event bigint) → void
  sql volatile set search_path=pg_catalog, pg_temp -- ab98f80b2c3487738c49686ba4f318c3

function outbox.sending(sub text, who text, of_lane smallint, of_fence bigint, of_pos bigint, note json) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms -- c4c252756ce285354dcbdaed83e97237

function outbox.sequence(piece integer, known_head bigint) → TABLE(numbered integer, head bigint, more boolean, new_epoch boolean, lanes smallint[], kinds smallint[], due_ms integer)
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=1s set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- 84c14d586fc508a3977f667f5dfd3a26

function outbox.sequenced_at(of_pos bigint) → timestamp with time zone
  sql stable set search_path=pg_catalog, pg_temp set enable_seqscan=off set enable_bitmapscan=off -- faeb68dcce97f5aac988e77a8cadda24

function outbox.served(of_id text) → void
  sql volatile set search_path=pg_catalog, pg_temp -- b5b1ca62bc8fc6a77f74aac8a1abcfe8

function outbox.session_headers() → jsonb
  plpgsql stable set search_path=pg_catalog, pg_temp -- 52aaab97edf399422f4644fd5f962662

function outbox.settle(sub text, rev integer, who text, batch json) → SETOF smallint
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- b6d3340200d0714bec8959258a02439f

function outbox.settle_blocked(s outbox.subscription, of_lane smallint, r record) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- e93d7b549ca963752f7b3ab168e0d375

function outbox.settle_done(s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text, reach jsonb) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- a7199e62b3e8a7eda71bc708c4e74927

function outbox.settle_reach(s outbox.subscription, of_lane smallint, done json, rows json) → jsonb
  plpgsql stable set search_path=pg_catalog, pg_temp -- da76b4472d60e3297e63b92c01a6976a

function outbox.settle_replay(sub text, rev integer, who text, of_journey bigint, batch json) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp set lock_timeout=500ms set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 8aadb2960443a16557a9237e3a0eca34

function outbox.settle_row(s outbox.subscription, of_lane smallint, r record, reach jsonb, now timestamp with time zone) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- cbaae28d49bee1aab863e4f9a79d7afe

function outbox.settle_rows(s outbox.subscription, of_lane smallint, now timestamp with time zone, done json, rows json, blocked json) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- b86065dfdc4cd4aa86bf345454e86a51

function outbox.settle_shadow(sub text, who text, batch json) → SETOF smallint
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 8d00621de4c224f20cba058e46eae836

function outbox.settles_late(s outbox.subscription, rev integer, given outbox.settlement[]) → boolean
  sql stable set search_path=pg_catalog, pg_temp -- c485cf6f741214bcc8800b6e701af0e2

function outbox.shadow_of(sub text, lane smallint, OUT fence bigint, OUT pos bigint, OUT delivered bigint) → record
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- c8b1cfc7f073f982dc29223176100867

function outbox.sieve(sub text, lanes smallint[], positions bigint[], ids bigint[], hashes integer[], after bigint, up_to bigint) → bigint[]
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- e5c93dd47b46b4fa340758b2be6abd47

function outbox.standing(subs text[], heard bigint[], head bigint, now timestamp with time zone) → TABLE(name text, behind boolean, free boolean)
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 1a2ce53014dba7d23bd41e51da69e1e6

function outbox.stands_at(sub text, mode text, lane smallint) → TABLE(pos bigint)
  sql stable -- da1efc868ca71c206dadbd1dd095b4d7

function outbox.start_epoch(epoch integer) → bigint
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 8d534f173513949879a6673386148738

function outbox.states_of(of_stage text, of_pos bigint, log_lane smallint, of_hash integer, of_event bigint, of_type text, of_aggregate_type text, of_aggregate_id text, emitted_at timestamp with time zone) → TABLE(subscription text, lane smallint, state text, attempts integer, next_attempt_at timestamp with time zone, first_failed_at timestamp with time zone, updated_at timestamp with time zone, code text, blocked_by_pos bigint)
  sql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set enable_hashjoin=off set enable_mergejoin=off set jit=off set max_parallel_workers_per_gather=0 -- 824607ad9dd1e54a167144f1cf1e480b

function outbox.strays(OUT rows integer, OUT top bigint) → record
  sql volatile security definer set search_path=pg_catalog, pg_temp -- 9f6522636faad0dae5aba2c715d6ab9d

function outbox.subscribe(sub text, rev integer, def jsonb, types text[], aggregates text[], lane_count smallint, ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text, start_pos bigint) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 5efcec26891c69ec3fad8334e905d1ae

function outbox.superseded(s outbox.subscription, lanes smallint[], positions bigint[]) → bigint[]
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- f54a7f450d716951560d28229ff2e614

function outbox.table_grants(role text, relation text) → text
  sql immutable parallel safe -- e13c28025d3411285daa1f7105493789

function outbox.take_journey(who text, kinds text[], subjects text[], of_id bigint, lease_ms integer) → SETOF outbox.journey
  plpgsql volatile set search_path=pg_catalog, pg_temp -- b1344b467afe4edc84aa183900f141f6

function outbox.trim_attempts(of_name text, days numeric, rows_max integer) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 7c2800e0796b3ef264c6efca5cf42f49

function outbox.trim_events(of_name text, days numeric, after bigint, rows_max integer, OUT last_id bigint, OUT gone bigint) → record
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 2c52b2d32aabb8c38d7507d0cad4c916

function outbox.trim_log(of_name text, days numeric, below bigint, rows_max integer) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off -- 25daee15bacc7c942f4b4582e477041b

function outbox.trim_slack(days numeric) → numeric
  sql immutable parallel safe -- f86db1786970ae59578fdcae8b8ae909

function outbox.unkeep(of_id bigint) → void
  sql volatile -- 291207efe2fe5b66ad7bed55c866a0e4

function outbox.unlocked(sub text, lanes smallint[]) → SETOF smallint
  sql volatile set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off -- de5e4c3d824649698c5755e0588c2726

function outbox.unnumbered(rows_max integer) → TABLE(type text, aggregate_type text, count bigint)
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 9c3e718544efc9ac388fbdb4bed14fa4

function outbox.unprobe(sub text, who text) → void
  sql volatile set lock_timeout=500ms -- 443788ed42cc5ed707bc8fec0d6f455f

function outbox.unwatch(target text) → boolean
  plpgsql volatile set lock_timeout=10s -- 6c5ae8d3052095aaa7ba2bf598c3baa3

function outbox.upkeep_turn(of_piece text, every_ms integer) → boolean
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 95cc189b76bdeac49cea8ae8161b2838

function outbox.walk_on(d outbox.delivery, reach jsonb, keep_row boolean) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 9e899c91bb7071210d355b70963c5491

function outbox.walk_on(d outbox.delivery, up_to bigint, keep_row boolean) → void
  sql volatile set search_path=pg_catalog, pg_temp -- cd463f18e52b07e739a83ea5fc822980

function outbox.walk_to_newest(d outbox.delivery, reach jsonb) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 21595eb4bbd5ea6abdfd74465a3fa421

function outbox.walk_to_newest(d outbox.delivery, up_to bigint) → void
  plpgsql volatile set search_path=pg_catalog, pg_temp -- 71fed5437fe1dfbabe6f1f208824aff9

function outbox.watch(target text, given jsonb, written text[]) → boolean
  plpgsql volatile set lock_timeout=10s -- db1c1dc719cdff72ee6bad7380d58b06

function outbox.watch_options(target regclass, given jsonb) → jsonb
  plpgsql volatile -- f7c13c7d41a832cafe23a2b56787166a

function outbox.whereabouts(of_id bigint, of_xid xid8, of_not_before timestamp with time zone, OUT stage text, OUT pos bigint, OUT lane smallint, OUT hash integer) → record
  plpgsql stable set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 922beeb8b70488937f7bf898996221ca

function outbox.window_floor(last outbox.step, oldest xid8) → TABLE(floor bigint)
  sql stable -- e980c7368694e6bea5991e3f2d5cfda4

CREATE TRIGGER note_change BEFORE INSERT OR UPDATE OF revision, definition, mode, lanes, kind, held_cause, probe_at ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION outbox.note_change();

CREATE TRIGGER note_removed AFTER DELETE ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION outbox.note_removed();

CREATE TRIGGER zz_forget_cursors AFTER DELETE ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION outbox.forget_cursors();
