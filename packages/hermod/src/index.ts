/** What users of the library import from `hermod`. */
export * from './define-events.ts'
export { catalogue, HermodError, type HermodErrorCode } from './errors.ts'
export type { NewEvent, OutboxEvent } from './event.ts'
export { type MigrateOptions, type MigrateResult, migrate } from './migrate.ts'
export type { OutboxOptions, SubscriptionOptions, WorkerOptions } from './options.ts'
export { createOutbox, Outbox } from './outbox.ts'
export type { Listener } from './telemetry.ts'
export type { Worker } from './worker/worker.ts'
