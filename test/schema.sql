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
  constraint lane_pkey PRIMARY KEY (subscription, lane),
  constraint lane_subscription_fkey FOREIGN KEY (subscription) REFERENCES outbox.subscription(name) ON DELETE CASCADE,
  constraint lane_parked_check CHECK (((length((parked ->> 'handle'::text)) >= 1) AND (length((parked ->> 'handle'::text)) <= 2000)))
) with (fillfactor=50);

create table outbox.leaf (
  name text not null,
  frozen_at timestamp with time zone,
  archived_as text,
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
  constraint subscription_pkey PRIMARY KEY (name),
  constraint subscription_check CHECK ((((held_cause IS NULL) = (held_since IS NULL)) AND ((held_cause IS NULL) = (probe_at IS NULL)))),
  constraint subscription_held_cause_check CHECK ((held_cause = ANY (ARRAY['unavailable'::text, 'misconfigured'::text]))),
  constraint subscription_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'dry-run'::text, 'paused'::text]))),
  constraint subscription_name_check CHECK ((name ~ '^[a-z][a-z0-9_.:-]{0,62}$'::text)),
  constraint subscription_revision_check CHECK ((revision >= 1))
);

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

function outbox.add_ahead(of_parent text, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- c2d09e1849d7eea15b27dadea76d51a9

function outbox.add_partition(parent text, from_value bigint, to_value bigint) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 30bc386c04a524ce7fd989f3b80bc1d0

function outbox.apply_grants() → void
  plpgsql volatile -- def2a82781ed570ecf154d4c731cf835

function outbox.ask_journey(of_id bigint, want text) → outbox.journey
  plpgsql volatile -- 76e2cb1763ca37d3f42ab594c14fbcef

function outbox.assert_event(type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) → void
  plpgsql immutable parallel safe -- fe359c2b139866513fd887b472dd4ab7

function outbox.assert_log_fits(accept_missing boolean, OUT orphans bigint) → bigint
  plpgsql volatile -- 45590649d1121c7027396b9b3292cb87

function outbox.assert_same_database(last outbox.step, system_identifier bigint, database oid, cur pg_snapshot) → void
  plpgsql volatile -- abf78584d9593eca16790b5044401e9f

function outbox.assert_sequencer() → void
  plpgsql volatile -- 272fd23d497b4f6560600d98081621f8

function outbox.attempt_holder(of_name text, to_value bigint, days numeric) → text
  plpgsql volatile -- 7e23f08f20ac1001e98e0954efb299de

function outbox.audit_policy(of_action text, of_subscription text, what text, rows bigint) → void
  sql volatile -- 0e248a82dd600762cfbb55ea086f02f2

function outbox.batch_end(s outbox.subscription, of_lane smallint, after bigint) → bigint
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- b7d7629def26301a4b911d8a53c15eb1

function outbox.begin_replay(of_journey bigint) → void
  sql volatile -- 2ba08b73a8c9522bb2482637cadaadd4

function outbox.blocked_of(sub text, scan_max integer, OUT blocked bigint, OUT waiting bigint, OUT waiting_pending bigint, OUT estimated boolean) → record
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 5235f3e3847e080cedc5c19e0ad28870

function outbox.capture() → trigger
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set TimeZone=UTC -- 1852369193e5b3451212f56e7b589754

function outbox.capture_body(o jsonb, image jsonb) → jsonb
  sql immutable parallel safe -- 2930fbefa10813f93003228a4d1fbac3

function outbox.capture_key(o jsonb, image jsonb) → jsonb
  sql immutable parallel safe -- 85192238661f09538c3f1636bb395600

function outbox.capture_row(o jsonb, event text, image jsonb, body jsonb) → void
  plpgsql volatile -- 860db0552ab7838ac4d6d447d719440a

function outbox.capture_truncate() → trigger
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 63eda1dd9a2e8905bd6afb2603bcb2f6

function outbox.claim(sub text, rev integer, who text, lanes_max integer, lease_ms integer) → TABLE(lane smallint, fence bigint, pos bigint, expired boolean)
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 198d8fd1fcad9371f3a48cfc4b26832d

function outbox.clock() → timestamp with time zone
  sql volatile parallel safe -- 94fc2f526401760006cf0a2bd7692e58

function outbox.copy_open(from_value bigint, to_value bigint, rows_max integer) → integer
  plpgsql volatile -- 9b3ba90e530dfc376d4bab94265383bf

function outbox.count_missing(is_full boolean, OUT missing bigint, OUT first_id bigint, OUT step_id bigint) → record
  plpgsql stable -- eb679e9e08f84536257b5a1bdd28b33f

function outbox.cursor_of(sub text, lane smallint, OUT fence bigint, OUT pos bigint, OUT delivered bigint) → record
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- c880d03841ff95ff469d13f556eda342

function outbox.dead_group(d outbox.delivery) → text
  sql immutable parallel safe -- 4ee1fd1bbb80f035c99e653e84f4e8c5

function outbox.decide(sub text, verb text, lanes smallint[], positions bigint[], states text[], forced boolean, why text, OUT done bigint[], OUT superseded bigint[]) → record
  plpgsql volatile -- b27ee1fcd87da4440fa4f0686107c2db

function outbox.discard_row(s outbox.subscription, d outbox.delivery, why text) → void
  plpgsql volatile -- f6c2c104ad67747aa245ce422a8b7e5a

function outbox.drop_leaf(of_parent text, of_name text) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 3ae05c7e560fbcd4dc4298098b9bb699

function outbox.emit(type text, aggregate_type text, aggregate_id text, payload json, headers json, not_before timestamp with time zone, key text, version integer) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- c79cb96ea243bf23c099a54ceecbb821

function outbox.emit_keyed(types text[], aggregate_types text[], aggregate_ids text[], payloads text[], versions smallint[], headers text[], not_before timestamp with time zone[], keys text[]) → SETOF bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 5bf71715f7b42edb8dae72a32fa3e44d

function outbox.emit_many(types text[], aggregate_types text[], aggregate_ids text[], payloads text[], versions smallint[], headers text[], not_before timestamp with time zone[], keys text[]) → SETOF bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 91345ae4ca7a734b88c574678e59d68a

function outbox.emit_one(type text, aggregate_type text, aggregate_id text, payload text, version smallint, headers text, not_before timestamp with time zone) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- d6f059d4da573e56b1ea65d7aa3811e8

function outbox.empty_leaf(of_parent text, of_name text, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 28be380eef48ec6c81379ef47d7423a5

function outbox.end_journey(of_id bigint, who text, to_state text, of_result jsonb, says text) → boolean
  plpgsql volatile -- 8ff5c7e7dc45deeaf560e21f997010ae

function outbox.enlist(sub text, rev integer, who text, lanes smallint[], fences bigint[], count_max integer, scan_max integer, attempts_max integer) → integer
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- d114982a4a8aa5808d4b0f061cfafbda

function outbox.enlist_again(sub text, rev integer, who text, of_journey bigint, of_lane smallint, of_fence bigint, from_pos bigint, to_pos bigint, positions bigint[], ids bigint[], hashes integer[], attempts_max integer) → boolean
  plpgsql volatile -- b6fa9f0dd5b7dda639cff1232b4af3ec

function outbox.ensure_log_partition(from_pos bigint, to_pos bigint) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- aa5341882684c7f25dbba6aab4763010

function outbox.event_at(at_pos bigint, lane_count smallint) → bigint
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- d30492cf43cc9d2a06d7b5afe31c1807

function outbox.event_holder(of_name text, from_value bigint, to_value bigint, seen pg_snapshot) → text
  plpgsql volatile -- 83530bbbe770eb89b3517389c875f1d0

function outbox.event_problem(type text, aggregate_type text, aggregate_id text, bytes integer, version integer, key text) → text
  sql immutable parallel safe -- 4a446457b51ae2286f3e14dc0e48b39f

function outbox.fence_off(up_to bigint) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 816960be05c936d00d690a2f4bf5de39

function outbox.file_scheduled(lower pg_snapshot, upper pg_snapshot, late xid8[], fenced bigint, due timestamp with time zone) → integer
  plpgsql volatile -- c3c70a9254bf2e487973c8c0037c230d

function outbox.follower(d outbox.delivery, up_to bigint, OUT pos bigint, OUT event_id bigint) → record
  sql stable -- d974f19709b62914e6fe021441c47d50

function outbox.followers(d outbox.delivery, up_to bigint, rows_max integer) → TABLE(pos bigint, event_id bigint)
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 75fb8af751e6e59c65663d865d3e5c05

function outbox.forget_cursors() → trigger
  plpgsql volatile -- a570d17c5b4e6b48dbd5470960efeb9c

function outbox.grant_role(prefix text, role text) → void
  plpgsql volatile -- d30c86fe10d9bc6cc18adeb426eb102b

function outbox.has_unseen(of_name text, seen pg_snapshot) → boolean
  plpgsql volatile -- 6d54f589c2124735e4dd083ee9f1fc00

function outbox.hash(aggregate_type text, aggregate_id text) → integer
  sql immutable parallel safe -- a154c96d4714a1569d90d155932b6c43

function outbox.head(pos bigint, id bigint, kind smallint, created_at timestamp with time zone, aggregate_id text, version smallint, mark text, names text, key text, headers json) → text
  sql stable parallel safe -- eecdfb8803f02fa3cd38df2df76468b2

function outbox.heartbeat(of_id text, of_name text, of_host text, of_pid integer, of_version text, subs text[], is_draining boolean, alive_ms integer) → TABLE(name text, revision integer, mode text, held_cause text, probe_ms bigint, lanes smallint, workers integer, others boolean, replay jsonb)
  plpgsql volatile -- 7176968d52f5d74eb27276ca8d003aaf

function outbox.held(sub text, who text, lanes smallint[], fences bigint[]) → TABLE(lane smallint, pos bigint)
  sql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 4a544cac89520caf6d2dfedf4947790e

function outbox.highest_id() → bigint
  sql stable -- 8974f47367847ccb930fd19393b26661

function outbox.highest_pos() → bigint
  sql stable -- a0321e6a43ed79288e37c94e48f17ee5

function outbox.hold(sub text, cause text, says text, after_ms integer, cap_ms integer, who text) → timestamp with time zone
  plpgsql volatile -- dca879c9b9d25c366e244ee39102a948

function outbox.holders() → text
  sql stable -- 134c7949497b3470f7ebf267f16b7543

function outbox.identity(OUT system_identifier bigint, OUT database oid, OUT timeline integer) → record
  plpgsql stable -- 24a139e3841bddde049c625cbaf577e9

function outbox.interrupt(s outbox.subscription, d outbox.delivery) → boolean
  plpgsql volatile -- cc7b2ccd7a2fbc744192ad26850fad7f

function outbox.keep_journey(of_id bigint, who text, lease_ms integer, of_phase text, more jsonb) → text
  sql volatile -- cedc0333e94918f14ac7578f8d157cea

function outbox.kept_range(OUT first_pos bigint, OUT last_pos bigint) → record
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- 9df96fb3c562096066f353c0ecb4cc64

function outbox.key_text(key jsonb, image jsonb) → text
  sql immutable parallel safe -- 5badc737980aacf21c05a4002f37eed9

function outbox.kind_code(of_type text, of_aggregate_type text) → smallint
  plpgsql volatile -- 1a239320048f3037d7ee6beff0e9af0a

function outbox.kinds(types text[], aggregates text[]) → smallint[]
  sql stable -- deccd1d006490cbc20752137eb763213

function outbox.lacks_copy(from_value bigint, to_value bigint) → boolean
  sql volatile -- 51e515401a97c3e812538e3722486b8b

function outbox.lag_of(sub text, scan_max integer, OUT head bigint, OUT cursor_pos bigint, OUT delivered bigint, OUT past bigint, OUT processing bigint, OUT estimated boolean, OUT oldest_pos bigint) → record
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 95cfe032230961165ee4f9e428b04039

function outbox.lane_of(hash integer, lanes smallint) → smallint
  sql immutable parallel safe -- 54078025fb6098daa1f8f85145a2477a

function outbox.last_id() → bigint
  sql volatile -- 64e37a90fd8a826d73745d9ff66101e0

function outbox.last_value(parent text) → bigint
  sql volatile -- 72c9e6aa694d63c730c33e7be03acea3

function outbox.leaf_range(of_parent text, of_name text, OUT from_value bigint, OUT to_value bigint) → record
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 48a28aeb2fb9a3c99be0c427b17b03ec

function outbox.leaf_rows(of_parent text, days numeric) → bigint
  sql volatile -- c17b7da7a5b77a587d1b8577bcde7d4b

function outbox.leave(of_id text) → void
  sql volatile -- 8b4c6ca85fb9d632a57f7aba0ad7b25b

function outbox.leaves() → TABLE(parent text, name text, from_value bigint, to_value bigint, closed boolean, frozen boolean, archived_as text, emptied boolean)
  sql volatile security definer set search_path=pg_catalog, pg_temp -- a3316690185131d611b60273d45bb9c1

function outbox.listened(sub text, after bigint, up_to bigint) → TABLE(from_pos bigint, until bigint, types text[], aggregates text[], kinds smallint[])
  sql stable -- 5ac006c8fdd16ce797244cb0c94e93e8

function outbox.lock(aggregate_types text[], aggregate_ids text[]) → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- dab230993972ce4b56f81bf162fe26f7

function outbox.lock_events() → void
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 555af7ba6e308828246d7523260e451d

function outbox.lock_leaf(of_name text) → boolean
  sql volatile -- 62155c5ffd8dc77db52c59107199b2ea

function outbox.lock_steps() → void
  plpgsql volatile -- ef8858e1dd9f9f2358c558733f5bb3f6

function outbox.log_at(of_pos bigint) → SETOF outbox.log
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- b90693f3a41560c0423627afd66c1e6f

function outbox.log_follower(of_name text, to_value bigint) → text
  plpgsql volatile -- 429d754960af721630bbe49603e55b6d

function outbox.log_holder(of_name text, to_value bigint, days numeric) → text
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 9c02f1ace805db46d3b57582316c32dc

function outbox.log_lanes(s outbox.subscription, of_lane smallint, doc_hash integer) → smallint[]
  sql stable -- 15cd071ca8fc8a6dce969d9b49f830cb

function outbox.log_of(of_event bigint, OUT pos bigint, OUT lane smallint, OUT hash integer) → record
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_indexscan=off set enable_indexonlyscan=off set enable_bitmapscan=on set jit=off set max_parallel_workers_per_gather=0 -- 9a37f613d331032c37e3449ce815d6dc

function outbox.log_reader(of_name text, to_value bigint) → text
  plpgsql volatile -- 13d12364c1d2224174549edeaac97c6d

function outbox.log_since() → timestamp with time zone
  sql stable -- e79f2fd134e858f16b8c33c6faa99a60

function outbox.long_held(rels oid[]) → boolean
  plpgsql volatile -- afbe8678fc268c56fcc7c5d925aadbe8

function outbox.mark(s outbox.subscription, at_lane smallint, of_type text, of_id text) → text
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- 1fb6609f6022adf851c153d11d4119ad

function outbox.matches(patterns text[], type text) → boolean
  sql immutable parallel safe -- 29272b3959e556975cf59e2aed424fb8

function outbox.may_execute(role text, name text, volatility "char", definer boolean) → boolean
  sql immutable parallel safe -- c470d4a5f2cd1636a06abf47e5e16e47

function outbox.near_ids() → integer
  sql immutable parallel safe -- bd0d42f20a8f2c45b43536f18c6d2723

function outbox.newer_delivered(s outbox.subscription, d outbox.delivery) → bigint
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 85d481af7406236d5ded80f03ad183f4

function outbox.newest(sub text, lanes smallint[], after bigint, up_to bigint, hashes integer[]) → TABLE(hash integer, pos bigint)
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- c59e059c7024cb9f66ffb3818d80bf1d

function outbox.not_in_log(last outbox.step, fenced bigint) → TABLE(id bigint, not_before timestamp with time zone, type text, aggregate_type text, aggregate_id text, bytes integer, retired boolean)
  sql stable -- 4ee7a808b7c83f047dac0aa0b05359ee

function outbox.not_superseded(sub text, positions bigint[], ids bigint[], hashes integer[], later bigint[], up_to bigint) → bigint[]
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_nestloop=on set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- a61f2182c5f741e71bdec96816f1a7a4

function outbox.note_audited(step_id bigint) → void
  sql volatile -- 73de4530cdd087020b132c012d4e04c5

function outbox.number_due(after_at timestamp with time zone, after_id bigint, now timestamp with time zone, piece integer, base bigint, lane_count smallint, OUT picked integer, OUT numbered integer, OUT last_at timestamp with time zone, OUT last_id bigint) → record
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- b26000f1d2e715d56d0359da23c0065f

function outbox.number_first(lower pg_snapshot, upper pg_snapshot, late xid8[], floor bigint, below xid8, fenced bigint, piece integer, base bigint, lane_count smallint, due timestamp with time zone, OUT numbered integer, OUT last_id bigint, OUT lanes smallint[], OUT kinds smallint[]) → record
  plpgsql volatile -- 2d4db8a1c1334905df7adc76a1dffe94

function outbox.number_near(lower pg_snapshot, upper pg_snapshot, above bigint, base bigint, lane_count smallint, due timestamp with time zone, take smallint[], count_max integer, bytes_max bigint, OUT numbered integer, OUT last_id bigint, OUT lanes smallint[], OUT kinds smallint[], OUT filed integer, OUT taken outbox.packed[]) → record
  plpgsql volatile -- ecedf7ce9d8a5981a0a14a918f04aa0d

function outbox.number_next(lower pg_snapshot, upper pg_snapshot, reached bigint, piece integer, base bigint, lane_count smallint, due timestamp with time zone, OUT numbered integer, OUT last_id bigint) → record
  plpgsql volatile -- 0e76aece91d3ebc3250b872e14cef590

function outbox.number_rest(last outbox.step, fenced bigint, base bigint, lane_count smallint, due timestamp with time zone, OUT numbered bigint, OUT filed bigint, OUT retired bigint) → record
  plpgsql volatile -- 17d2808019d2b943f77d4dfe20e3ddcd

function outbox.old_pos(days numeric) → bigint
  sql volatile -- 78ca3cbfb01ada6c1060341bbbcc600b

function outbox.park(sub text, who text, handle text, lanes json) → SETOF smallint
  sql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 2d61de50a92e1602c2ff05fbc60d50cd

function outbox.parked_in(sub text, of_lane smallint) → TABLE(handle text, "from" bigint, "to" bigint, delivered integer, superseded integer, since timestamp with time zone)
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 3caa785f0941dc7de2a4dbe7bb9b06c5

function outbox.picked(positions bigint[], ids bigint[], hashes integer[], kept bigint[]) → TABLE(pos bigint, id bigint, hash integer)
  sql stable set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off -- 626e0f4fc3885d0047863352333e8ffc

function outbox.probe(sub text, who text, call_ms integer) → boolean
  plpgsql volatile -- c1bc3befef77a2fd1bb57f6f3351b3ff

function outbox.prune(event_days numeric, delivery_days numeric, key_days numeric, rows_max integer) → TABLE(what text, rows bigint)
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- a6f7d9505b9440696d1c2b10af908957

function outbox.prune_deliveries(days numeric, rows_max integer) → bigint
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp set lock_timeout=50ms -- 4fbec8e1b932433e60df5bb93c7541f7

function outbox.rate(of_parent text, last bigint) → numeric
  plpgsql volatile -- 5927a68eb5c3cea447e0e155d289f039

function outbox.rates(since timestamp with time zone) → TABLE(subscription text, delivered bigint, failed bigint)
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_indexscan=off set enable_bitmapscan=on set jit=off set max_parallel_workers_per_gather=0 -- 9cef46a70c512f5a41403f93f16509ce

function outbox.read(sub text, rev integer, lanes smallint[], after bigint[], count_max integer, bytes_max bigint, scan_max integer, probing boolean, filled boolean[]) → TABLE(lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 65eb0766d962cad666ce1702f739f202

function outbox.read_due(s outbox.subscription, lanes smallint[], count_max integer, bytes_max bigint, now timestamp with time zone) → TABLE(lane smallint, head text, payload text)
  sql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- a2c9f76ae36cbe2c867568138d368564

function outbox.read_lanes(s outbox.subscription, lanes smallint[], after bigint[], filled boolean[], until bigint, ends boolean, kinds smallint[], count_max integer, bytes_max bigint, scan_max integer, marked boolean) → TABLE(lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
  sql stable -- b2fba22269f8238c5c09b1beec6e3453

function outbox.read_single(s outbox.subscription, after bigint, until bigint, ends boolean, kinds smallint[], budget integer, bytes_max bigint, scan_max integer, marked boolean) → TABLE(lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 3928bab4f1e9684884f8a26c3b314963

function outbox.reads_all(sub text, rev integer, lanes smallint[], known bigint) → boolean
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off -- 7ad42af768513d22cf1053ff2a2d7005

function outbox.rebase(request text, who text, why text, wait_ms integer, accept_missing boolean) → jsonb
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 166b47aebe74127688afd380d8c1a4dd

function outbox.record_attempt(sub text, of_lane smallint, from_pos bigint, to_pos bigint, number bigint, call json, delivered integer, superseded integer, failed integer, rows json, dry_run boolean) → void
  plpgsql volatile -- b4cf6cfbf82657bc7148a9973c194cc2

function outbox.recover(sub text) → boolean
  plpgsql volatile -- a04b8a7ce3f5c719c046ad31fc671048

function outbox.refuse_table(target regclass, truncate text, written text[]) → void
  plpgsql volatile -- 6b7e9ed86ea040848b94e09c16ca5678

function outbox.refuse_watch(says text) → void
  plpgsql volatile -- 7246a9a8fbb6b18cf80cd1a147ffd42a

function outbox.release(sub text, who text, lanes smallint[], fences bigint[]) → SETOF smallint
  sql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off -- a233f2e29c84aec018b5310aa2d164b4

function outbox.release_held(before outbox.subscription, after outbox.subscription) → void
  plpgsql volatile -- 0b5211f02e2396ebf605645adb3146fe

function outbox.remember_identity() → text
  sql volatile -- ebc13c28b505eb55869eaff201f52185

function outbox.renew(sub text, who text, lanes smallint[], fences bigint[], lease_ms integer) → SETOF smallint
  sql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off -- 442220fbbfd96f1454054cdc6abb4014

function outbox.replay_mark(s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text) → text
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- 62c42a4d7429e34385bbf60b64684593

function outbox.replay_of(sub text) → bigint
  sql stable set enable_seqscan=off -- 779b3a6443db1a895572f263e76927f7

function outbox.replay_read(sub text, rev integer, who text, of_lane smallint, of_fence bigint, positions bigint[], ids bigint[], hashes integer[], sieved bigint, bytes_max bigint) → TABLE(lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- c7aee9993459554f8437ebe50f1a48f2

function outbox.replay_window(sub text, of_lane smallint, plan jsonb, after bigint, up_to bigint, rows_max integer, OUT through bigint, OUT matching integer, OUT positions bigint[], OUT ids bigint[], OUT hashes integer[]) → record
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 41f562b467763e759cd637b975ee508d

function outbox.retention_report(days numeric) → TABLE(subscription text, first_pos bigint, since timestamp with time zone, held_leaves integer, held_bytes bigint, served_at timestamp with time zone, mode text)
  sql volatile security definer set search_path=pg_catalog, pg_temp -- a82c59c12a2aec91b90ad6f6dd82e3d2

function outbox.rolled_back(request text, who text, why text) → jsonb
  plpgsql volatile security definer set search_path=pg_catalog, pg_temp -- 134457696a235229a7e93e948fd6f7ea

function outbox.scan(single boolean, from_lane smallint, after bigint, up_to bigint, rows_max integer) → SETOF outbox.log
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 7234ae265481ebaf7a4382a7e1d46e36

function outbox.sending(sub text, who text, of_lane smallint, of_fence bigint, of_pos bigint, note json) → boolean
  plpgsql volatile -- 1eb7455b69310e33377d77bb12270246

function outbox.sequence(piece integer, take smallint[], known bigint, count_max integer, bytes_max bigint) → TABLE(numbered integer, head bigint, more boolean, new_epoch boolean, lanes smallint[], kinds smallint[], taken outbox.packed[])
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off -- 8d6a4f081c7c26d531071638a4492888

function outbox.sequenced_at(of_pos bigint) → timestamp with time zone
  sql stable set enable_seqscan=off set enable_bitmapscan=off -- faeb68dcce97f5aac988e77a8cadda24

function outbox.session_headers() → jsonb
  plpgsql stable -- 94b69d4b292bc1f8d73fddb4a4d7bb79

function outbox.settle(sub text, rev integer, who text, batch json) → SETOF smallint
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 2e028003ca90b43187a9a3a399a6251a

function outbox.settle_done(s outbox.subscription, of_lane smallint, of_pos bigint, of_type text, of_id text, up_to bigint) → void
  plpgsql volatile -- fe875919402d68d3b70c435d45056ef9

function outbox.settle_held(s outbox.subscription, of_lane smallint, r record, now timestamp with time zone) → void
  plpgsql volatile -- 80fd1f584989124d1014e42c9b681ad1

function outbox.settle_replay(sub text, rev integer, who text, of_journey bigint, batch json) → boolean
  plpgsql volatile set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 6a0d5b339de32350a3ef4f213e7b6e80

function outbox.settle_row(s outbox.subscription, of_lane smallint, r record, up_to bigint, now timestamp with time zone) → void
  plpgsql volatile -- a4229390f5b3a1bcbff4af287aae336c

function outbox.settle_shadow(sub text, who text, batch json) → SETOF smallint
  plpgsql volatile -- f05e021ed80d4c8cfde294a0f8b4e171

function outbox.shadow_of(sub text, lane smallint, OUT fence bigint, OUT pos bigint, OUT delivered bigint) → record
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off -- c8b1cfc7f073f982dc29223176100867

function outbox.sieve(sub text, lanes smallint[], positions bigint[], ids bigint[], hashes integer[], after bigint, up_to bigint) → bigint[]
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=on set enable_nestloop=off set enable_mergejoin=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- f2f0cc5cc5f85eb440a6e1bc3a8179c1

function outbox.start_epoch(epoch integer) → bigint
  plpgsql volatile -- 49ad1409c105348637a61850f6dafc0d

function outbox.states_of(of_stage text, of_pos bigint, log_lane smallint, of_hash integer, of_event bigint, of_type text, of_aggregate_type text, of_aggregate_id text, emitted_at timestamp with time zone) → TABLE(subscription text, lane smallint, state text, attempts integer, next_attempt_at timestamp with time zone, first_failed_at timestamp with time zone, updated_at timestamp with time zone, code text, blocked_by_pos bigint)
  sql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set enable_hashjoin=off set enable_mergejoin=off set jit=off set max_parallel_workers_per_gather=0 -- 3ffbf2ccf6280a5f1797cce694091905

function outbox.strays(OUT rows integer, OUT top bigint) → record
  sql volatile security definer set search_path=pg_catalog, pg_temp -- 9f6522636faad0dae5aba2c715d6ab9d

function outbox.subscribe(sub text, rev integer, def jsonb, types text[], aggregates text[], lane_count smallint, ordered boolean, coalesced boolean, ledger boolean, dead_holds boolean, start_mode text, start_pos bigint) → void
  plpgsql volatile -- fb246b5a1ddfef40381698ae9efb704c

function outbox.table_grants(role text, relation text) → text
  sql immutable parallel safe -- 295e26a9a7658cd716a15af0008cc3e7

function outbox.take_journey(who text, kinds text[], subjects text[], of_id bigint, lease_ms integer) → SETOF outbox.journey
  plpgsql volatile -- bde605d50286a9905d90b1ce0e618dc6

function outbox.turn(piece integer, who text, batch json, sub text, rev integer, lanes smallint[], after bigint[], count_max integer, bytes_max bigint, scan_max integer, probing boolean, filled boolean[], known bigint) → TABLE(part text, lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
  plpgsql volatile -- 77bfbbf37d05691865110d993f060f19

function outbox.unkeep(of_id bigint) → void
  sql volatile -- 469e7cdf804b0b6280cd8c672f378f81

function outbox.unnumbered(rows_max integer) → TABLE(type text, aggregate_type text, count bigint)
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 58ff51a95bff764d6d939ce94748e5ac

function outbox.unprobe(sub text, who text) → boolean
  plpgsql volatile -- 4b3852e3f10f3fd30129fb4d1e4be851

function outbox.unwatch(target text) → boolean
  plpgsql volatile set lock_timeout=10s -- f9b2dfc7683e9f47bcae40a9bab025b7

function outbox.upkeep_turn(of_piece text, every_ms integer) → boolean
  plpgsql volatile -- 95cc189b76bdeac49cea8ae8161b2838

function outbox.walk_on(d outbox.delivery, up_to bigint, keep_row boolean) → void
  plpgsql volatile -- 909114eab6c88f6b68da282dafa53d58

function outbox.walk_to_newest(d outbox.delivery, up_to bigint) → void
  plpgsql volatile -- 5d3387f4f249169fcb0e6f590e66fe86

function outbox.watch(target text, given jsonb, written text[]) → boolean
  plpgsql volatile set lock_timeout=10s -- 84e145440aef54ae5bb275c55dcb4f13

function outbox.watch_options(target regclass, given jsonb) → jsonb
  plpgsql volatile -- c45c091046d3e74a647479decc4837db

function outbox.whereabouts(of_id bigint, of_xid xid8, of_not_before timestamp with time zone, OUT stage text, OUT pos bigint, OUT lane smallint, OUT hash integer) → record
  plpgsql stable set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_bitmapscan=off set jit=off set max_parallel_workers_per_gather=0 -- 82d7966d19c0fee5843093f2ef6c831e

CREATE TRIGGER zz_forget_cursors AFTER DELETE ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION outbox.forget_cursors();
