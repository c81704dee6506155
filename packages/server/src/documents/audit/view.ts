/** Entries of the audit trail and sync states as the API answers with them. */
import type { EventAttempt, EventStory } from 'hermod'
import type { SubscriptionSync, SyncState } from '../sync.ts'
import type { LogEntry } from './queries.ts'

/** Only auditors see identity and origin; nobody sees the content of a draft that is not theirs. */
export function entryView(entry: LogEntry, auditor: boolean) {
  const { visible, at, identity, userAgent, ipAddress, requestId, changes, ...rest } = entry
  return {
    ...rest,
    changes: visible ? changes : namesOnly(changes),
    redacted: !visible,
    at: at.toISOString(),
    ...(auditor && { identity, userAgent, ipAddress, requestId }),
  }
}

function namesOnly(changes: object): object {
  return Object.fromEntries(Object.keys(changes).map((field) => [field, {}]))
}

export function syncView(entry: LogEntry, { story, ...sync }: SyncState) {
  const { documentId, version, id } = entry
  return {
    documentId,
    version,
    log: id,
    searchable: sync.searchable,
    why: sync.why,
    indexes: sync.indexes,
    event: story === undefined ? null : eventView(story),
    subscriptions: sync.subscriptions.map(stateView),
    attempts: (story?.attempts ?? []).map(attemptView),
  }
}

function eventView({ id, position, stage, type, createdAt, sequencedAt, bytes, headers }: EventStory) {
  return {
    id: String(id),
    position: position === null ? null : String(position),
    stage,
    type,
    createdAt: createdAt?.toISOString() ?? null,
    sequencedAt: sequencedAt?.toISOString() ?? null,
    bytes,
    log: headers.log ?? null,
  }
}

function stateView(one: SubscriptionSync) {
  const { subscription, state, attempts, nextAttemptAt, code, error, blockedBy, reason } = one
  const { health, healthWhy } = one
  return {
    subscription,
    state,
    attempts,
    code,
    error,
    reason,
    health,
    healthWhy,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    blockedBy: blockedBy === null ? null : String(blockedBy),
  }
}

function attemptView({ subscription, startedAt, durationMs, worker, ...rest }: EventAttempt) {
  const { outcome, code, error } = rest
  const when = { startedAt: startedAt.toISOString(), durationMs }
  return { subscription, worker: worker === '' ? null : worker, outcome, code, error, ...when }
}
