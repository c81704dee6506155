/** What an operator asks and decides, in one place for the outbox and the CLI. */
export {
  type AuditOptions,
  type AuditRow,
  auditTrail,
  type Decided,
  type Decision,
} from './audit.ts'
export { type Correction, type CorrectResult, correct } from './correct.ts'
export {
  type DeadGroup,
  type DeadLetter,
  type DeadOptions,
  type DeliveryFilter,
  deadGroups,
  deadLetters,
} from './dead.ts'
export { type DiscardOptions, type DiscardResult, discard } from './discard.ts'
export {
  type FindFilter,
  type FindOptions,
  type FoundEvent,
  type FoundPage,
  find,
  type State,
  states,
} from './find.ts'
export { type Health, type HealthWord, healthWords } from './health.ts'
export { type Mode, type ModeOptions, type ModeResult, pause, resume, setMode } from './pause.ts'
export { type RemoveOptions, type RemoveResult, remove } from './remove.ts'
export { type RetryOptions, type RetryResult, retry, type Which } from './retry.ts'
export {
  type EventAttempt,
  type EventName,
  type EventState,
  type EventStory,
  show,
} from './show.ts'
export {
  type Breaker,
  type Stats,
  type StatsOptions,
  type SubscriptionStats,
  stats,
} from './stats.ts'
