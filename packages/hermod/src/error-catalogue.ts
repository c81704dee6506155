/**
 * The catalogue of coded errors: what each one says and what to do next. Codes are public: they
 * are added, never renamed.
 */
export const catalogue = {
  HMD_EMIT_OUTSIDE_TRANSACTION: {
    says: 'An event was emitted outside a transaction, so it could not commit or roll back together with your rows.',
    fix: 'Pass the client you called BEGIN on, or use outbox.transaction(fn).',
  },
  HMD_ROLLED_BACK: {
    says: 'PostgreSQL rolled the transaction back instead of committing it: one of its statements had failed.',
    fix: 'Let the error of the statement leave the function, or put the statement into a savepoint.',
  },
  HMD_CLIENT_UNKNOWN: {
    says: 'The transaction object is of no kind that Hermod knows.',
    fix: 'Pass a pg client or the transaction of a supported library, or an object with query(text, values).',
  },
  HMD_EVENT_INVALID: {
    says: 'A field of an event is missing, malformed or out of bounds.',
    fix: 'Correct the field named in the error; nothing was written.',
  },
  HMD_EVENT_UNKNOWN: {
    says: 'The event type, or this version of it, is not declared in defineEvents().',
    fix: 'Declare the type and version, or correct the spelling; deploy readers before writers.',
  },
  HMD_EVENT_GONE: {
    says: 'The row of an event that was to be delivered is no longer in the database.',
    fix: 'Somebody deleted it by hand: restore it, or discard the dead letter. Retention keeps events that are not delivered.',
  },
  HMD_EVENT_LIMIT: {
    says: 'One call was given more than 10,000 events.',
    fix: 'Emit in several calls inside the same transaction.',
  },
  HMD_PAYLOAD_INVALID: {
    says: 'A payload holds a value that JSON would drop or change, or that PostgreSQL cannot store.',
    fix: 'Convert the value at the path named in the error before emitting.',
  },
  HMD_PAYLOAD_LARGE: {
    says: 'A payload is larger than 65,536 bytes; it was written, this is a warning.',
    fix: 'Emit a reference (no payload) and let the subscription load() the rows at delivery.',
  },
  HMD_PAYLOAD_TOO_LARGE: {
    says: 'A payload is larger than 262,144 bytes of JSON or nested deeper than 64 levels.',
    fix: 'Emit a reference (no payload) and let the subscription load() the rows at delivery.',
  },
  HMD_OPTION_UNKNOWN: {
    says: 'An option or event field has a name Hermod does not know.',
    fix: 'Use the suggested name, or remove the key.',
  },
  HMD_OPTION_INVALID: {
    says: 'One or more options are missing, of the wrong type or out of bounds.',
    fix: 'Correct the fields listed in details.problems; all of them are listed at once.',
  },
  HMD_IDEMPOTENCY_CONFLICT: {
    says: 'The idempotency key was already used for an event with another body.',
    fix: 'Use a new key for a new event, or send the same body again.',
  },
  HMD_LOCK_LIMIT: {
    says: 'More than 100 aggregates were to be locked at once.',
    fix: 'Lock at most 100 aggregates per transaction, or let the subscription load() at delivery.',
  },
  HMD_LOCK_TIMEOUT: {
    says: 'A lock was not granted in time.',
    fix: 'Retry the transaction; look for one that holds the lock for long (hermod doctor).',
  },
  HMD_MIGRATION_NEWER: {
    says: 'The schema in the database is newer than this version of the library.',
    fix: 'Update the library in this process; never run an older one against a newer schema.',
  },
  HMD_MIGRATION_NEEDED: {
    says: 'The schema is missing or older than this version of the library needs.',
    fix: 'Run hermod migrate (or outbox.migrate()) before starting.',
  },
  HMD_MIGRATION_CHANGED: {
    says: 'A migration that was already applied differs from the one shipped with the library.',
    fix: 'Restore the original migration file; put changes into a new one.',
  },
  HMD_POSTGRES_TOO_OLD: {
    says: 'The PostgreSQL server is older than version 14.',
    fix: 'Use PostgreSQL 14 or newer.',
  },
  HMD_STANDBY: {
    says: 'The database is a standby: it cannot number, claim or settle.',
    fix: 'Point DATABASE_URL at the primary (target_session_attrs=read-write).',
  },
  HMD_ISOLATION: {
    says: 'The transaction runs under an isolation level this command cannot use.',
    fix: "Run it under READ COMMITTED: alter role … set default_transaction_isolation = 'read committed'.",
  },
  HMD_RESTORED: {
    says: 'The database was restored or moved: its transaction ids no longer fit the log.',
    fix: 'Run hermod rebase once; it numbers what is not yet in the log and loses nothing.',
  },
  HMD_HEAD_WENT_BACK: {
    says: 'The log ends below a position this process has seen: the database went back in time without a new timeline.',
    fix: 'Find out what was restored. If the database is to stay as it is, run hermod rebase --rolled-back once.',
  },
  HMD_REBASE_BUSY: {
    says: 'Rebase could not lock the event table because producers hold it.',
    fix: 'End the open transactions listed in details, then run hermod rebase again.',
  },
  HMD_REBASE_LANES: {
    says: 'Rebase would move an aggregate to another lane, which would break its order.',
    fix: 'Install with the number of lanes the log was written with, then run hermod rebase again.',
  },
  HMD_SEQUENCE_CACHE: {
    says: 'The sequence of event ids caches values, so ids are not handed out in order.',
    fix: 'Run: alter sequence outbox.event_id cache 1.',
  },
  HMD_LANES_CHANGED: {
    says: 'The number of lanes differs from the one fixed at installation.',
    fix: 'Remove the lanes option or give the installed number; lanes cannot change while events exist.',
  },
  HMD_SUBSCRIPTION_CONFLICT: {
    says: 'A subscription is defined twice under one name and revision, with different definitions.',
    fix: 'Raise revision together with every change, and give every sink a subscription of its own.',
  },
  HMD_SUBSCRIPTION_OUTDATED: {
    says: 'A newer revision of the subscription is installed, so this worker does not claim for it.',
    fix: 'Deploy the newer code to this worker.',
  },
  HMD_SUBSCRIPTION_UNKNOWN: {
    says: 'There is no subscription of that name.',
    fix: 'Check the name against hermod status, or subscribe it before starting.',
  },
  HMD_SUBSCRIPTION_UNDELIVERED: {
    says: 'The subscription still has events that were not delivered; removing it would discard them.',
    fix: 'Let a worker deliver them, or give confirm with the name of the subscription.',
  },
  HMD_SINK_KIND_UNKNOWN: {
    says: 'No running worker has the kind of sink that a subscription names, so nobody serves it.',
    fix: 'Register the kind with outbox.sinkKind() where workers run, or correct the kind of the subscription.',
  },
  HMD_SINK_KIND_FAILED: {
    says: 'A kind of sink could not make a sink of the stored settings, so this worker does not serve the subscription.',
    fix: 'Correct the settings with outbox.subscriptions.change(); it is tried again when they change.',
  },
  HMD_SINK_BROKEN: {
    says: 'A sink broke its contract: it threw a value that is not an error, or returned outcomes that do not fit.',
    fix: 'Return one outcome per event in the order given, or nothing when all were delivered.',
  },
  HMD_SINK_DEADLINE: {
    says: 'A call to a sink did not end before its deadline.',
    fix: 'Honour context.signal in the sink, raise callMs (below leaseMs), or send smaller batches.',
  },
  HMD_SETTLE_REFUSED: {
    says: 'The database refused to store what a destination answered for an event; the answer counts, its text is lost.',
    fix: 'Look at the cause in the warning; if it is not a constraint or trigger of yours, please report it.',
  },
  HMD_EVENT_WITHDRAWN: {
    says: 'An operator has decided about this message while its call was under way.',
    fix: 'Do not send it; go on with the others. What the call has answered before stands.',
  },
  HMD_SECOND_SEND_REFUSED: {
    says: 'After a take-over the newest states were sent again, and the destination did not take some of them.',
    fix: 'Nothing if it refuses what it has. Otherwise compare it with its source (hermod verify), or replay the aggregates named.',
  },
  HMD_LEASE_LOST: {
    says: 'The lane was taken over by another worker, so the result of the call was dropped.',
    fix: 'Nothing to do: the new owner delivers again. If it is frequent, raise leaseMs.',
  },
  HMD_DELIVERY_UNKNOWN: {
    says: 'There is no such delivery.',
    fix: 'Check subscription and position; a delivered event has no delivery row.',
  },
  HMD_DELIVERY_STATE: {
    says: 'The command is not possible in the state the delivery is in.',
    fix: 'Look at the delivery again; the error names its state and the states allowed.',
  },
  HMD_DELIVERY_SUPERSEDED: {
    says: 'A newer event of the same aggregate was already delivered, so this one would undo it.',
    fix: 'Discard the delivery, or emit a new event with the current state.',
  },
  HMD_FIND_RANGE: {
    says: 'A text search covers more than 24 hours of events.',
    fix: 'Give since and until at most 24 hours apart, or filter by aggregate instead.',
  },
  HMD_JOURNEY_UNKNOWN: {
    says: 'There is no such journey.',
    fix: 'Look for its number with hermod journeys list.',
  },
  HMD_JOURNEY_STATE: {
    says: 'The command is not possible in the state the journey is in.',
    fix: 'Look at it again with hermod journeys show; the error names its state and those allowed.',
  },
  HMD_REPLAY_RANGE: {
    says: 'A replay was requested for positions that are no longer kept, or do not exist yet.',
    fix: 'Stay within the range named in the error. Older data can only come from the source: use rebuild.',
  },
  HMD_REPLAY_LEDGER: {
    says: 'A replay of a ledger subscription (mail, SMS) was requested without confirming its name.',
    fix: 'Count first with dryRun; then give confirm with the name of the subscription.',
  },
  HMD_DRAIN_TIMEOUT: {
    says: 'Deliveries are still open after the timeout of drain().',
    fix: 'Look at outbox.stats(): what is paused, held or retrying; or give drain a longer timeoutMs.',
  },
  HMD_FIND_TIMEOUT: {
    says: 'The search took longer than its limit of 2 seconds.',
    fix: 'Narrow it: a shorter time range, a type or an aggregate.',
  },
  HMD_CURSOR_INVALID: {
    says: 'The page cursor was not made by this query.',
    fix: 'Start again without a cursor and pass on the one you get.',
  },
  HMD_PARTITION_DEFAULT: {
    says: 'Events are in the default partition because no other partition was created in time; none is lost.',
    fix: 'Keep at least one worker with upkeep running; new partitions start above these events.',
  },
  HMD_RETENTION_HELD: {
    says: 'A subscription that nobody serves keeps old events from being removed.',
    fix: 'Start a worker for it, or remove the subscription if it is no longer wanted.',
  },
  HMD_ARCHIVE_FAILED: {
    says: 'Old events or deliveries could not be archived, so they were not removed.',
    fix: 'Check the folder or bucket of the archive (retention.archive, or the settings archive.*); it is retried automatically.',
  },
  HMD_WATCH_INVALID: {
    says: 'The table cannot be watched with these options.',
    fix: 'Name an ordinary table that has a key and these columns, and that none of your sinks writes to.',
  },
  HMD_DATABASE_MISSING: {
    says: 'No database was named.',
    fix: 'Set DATABASE_URL, or pass a pool.',
  },
  HMD_DATABASE_UNREACHABLE: {
    says: 'The database does not answer.',
    fix: 'Check host, port and credentials in DATABASE_URL, and that the server is running.',
  },
  HMD_POOL_TOO_SMALL: {
    says: 'The pool has fewer connections than concurrency + 2.',
    fix: 'Raise max of the pool, or lower concurrency.',
  },
  HMD_WORKER_STOPPED: {
    says: 'The worker was stopped.',
    fix: 'Start a new one with outbox.start().',
  },
  HMD_USAGE: {
    says: 'A command was called in a way it does not understand.',
    fix: 'Run hermod help, or hermod help COMMAND.',
  },
  HMD_SEARCH_SETUP: {
    says: 'The search engine could not be set up with the rights it has.',
    fix: 'Let an administrator run the statement named in the error once, or grant CREATE on the database.',
  },
  HMD_SEARCH_INDEX_MISSING: {
    says: 'There is no such search index, or no such generation of it.',
    fix: 'Create it with engine.ensureIndex() before writing or searching.',
  },
  HMD_SEARCH_GENERATION: {
    says: 'A generation of a search index is not in the state this step needs.',
    fix: 'Look at engine.generations(index): only one can be building, and the live one cannot be dropped.',
  },
  HMD_INDEX_UNKNOWN: {
    says: 'No index of that name is declared in this process.',
    fix: 'Declare it with outbox.index(name, …) in the module that --config names, or correct the name.',
  },
  HMD_INDEX_CONFLICT: {
    says: 'An index is declared twice.',
    fix: 'Declare each index once; several subscriptions may write it.',
  },
  HMD_SOURCE_INVALID: {
    says: 'The source of an index cannot be read as it was declared.',
    fix: 'Correct table, columns, key or condition of tableSource() or querySource(), and grant SELECT on it.',
  },
  HMD_REBUILD_DIFFERS: {
    says: 'The new generation differs from the source, so it was not swapped in; searches use the old one.',
    fix: 'Look at the examples with hermod journeys show. Rows written without events, or a map() that gives another document each time, are the usual causes.',
  },
  HMD_REBUILD_LOST: {
    says: 'The generation a rebuild was filling is gone or already live.',
    fix: 'Start the rebuild again; nobody else may create, swap or drop generations meanwhile.',
  },
  HMD_VERIFY_BEHIND: {
    says: 'The subscription makes no progress, so drift cannot be told from events that are still on their way.',
    fix: 'Start a worker (hermod work), or fix what stops the subscription (hermod status), then verify again.',
  },
  HMD_REPAIR_IMPOSSIBLE: {
    says: 'The index cannot be repaired through the log: its subscription cannot read a row again.',
    fix: "Give the subscription load: index.load (and loads: 'references' where events carry state), or run hermod rebuild.",
  },
} as const satisfies Record<`HMD_${string}`, { says: string; fix: string }>
