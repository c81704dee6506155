/** What users of the library import from `hermod`. */
export {
  type DefinedEvents,
  defineEvents,
  type EventDefinition,
  type EventTypeOf,
  type NewEventOf,
  type OutboxEventOf,
  type PayloadOf,
  type PayloadType,
  type,
} from './define-events.ts'
export type {
  AuditOptions,
  AuditRow,
  Breaker,
  Correction,
  CorrectResult,
  DeadGroup,
  DeadLetter,
  DeadOptions,
  Decided,
  Decision,
  DeliveryFilter,
  DiscardOptions,
  DiscardResult,
  EventAttempt,
  EventName,
  EventState,
  EventStory,
  FindFilter,
  FindOptions,
  FoundEvent,
  FoundPage,
  Health,
  HealthWord,
  Mode,
  ModeOptions,
  ModeResult,
  RemoveOptions,
  RemoveResult,
  RetryOptions,
  RetryResult,
  State,
  Stats,
  StatsOptions,
  SubscriptionStats,
  Which,
} from './desk/desk.ts'
export { type DoctorOptions, type DoctorResult, doctor } from './desk/doctor.ts'
export { type RebaseOptions, type RebaseResult, rebase } from './desk/rebase.ts'
export { installRoles, type RolesOptions } from './desk/roles.ts'
export { catalogue, HermodError, type HermodErrorCode } from './errors.ts'
export type { NewEvent, OutboxEvent } from './event.ts'
export type { EventDefinitions } from './event-definitions.ts'
export type { WatchOptions } from './flow/watch.ts'
export type { Compared, Difference } from './journeys/compare.ts'
export type { DeclaredIndex, IndexOptions, Schedule } from './journeys/declared-index.ts'
export type { RebuildPreview, Started } from './journeys/indexes.ts'
export type { Asked, Journey, JourneyFilter, JourneyKind, JourneyState, Progress } from './journeys/journey.ts'
export type { Journeys, WatchOptions as JourneyWatchOptions } from './journeys/journeys.ts'
export type { RebuildPlan, RebuildResult } from './journeys/rebuild.ts'
export type { ReplayDryRun, ReplayStart } from './journeys/replay.ts'
export type { ReplayOptions } from './journeys/replay-options.ts'
export { type JourneyHandler, JourneyStopped, type Run } from './journeys/runner.ts'
export type { IndexSource, SourceDocument, SourcePage, SourceRows } from './journeys/source.ts'
export {
  type QuerySourceOptions,
  querySource,
  type TableSourceOptions,
  tableSource,
} from './journeys/sources.ts'
export type { VerifyPlan, VerifyResult } from './journeys/verify.ts'
export { assertMigrated, type MigrateOptions, type MigrateResult, migrate } from './migrate.ts'
export { applyMigrations, assertApplied, type NumberedSql } from './numbered-sql.ts'
export type { Definition, OutboxOptions, SubscriptionOptions, WorkerOptions } from './options.ts'
export { createOutbox, Outbox } from './outbox.ts'
export type { MakeSink, Settings, SinkKindOptions } from './sink-kinds.ts'
export type {
  ChangeOptions,
  DefinedSubscription,
  DefineOptions,
  ListOptions,
  Subscriptions,
} from './subscriptions.ts'
export type { Listener } from './telemetry.ts'
export type { Worker } from './worker/worker.ts'
