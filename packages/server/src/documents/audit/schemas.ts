/** The shapes of history, audit and sync. */
import { Type } from 'typebox'
import { indexNames, modificationTypes } from '../../events.ts'
import { pageQuery } from '../../http/paging.ts'
import { documentId, orNull, person, personId, time } from '../schemas.ts'

const text = Type.String()
const number = Type.String({ pattern: '^[0-9]{1,19}$' })
/** As it is asked for: within 64 bits. */
const askedNumber = Type.String({ pattern: '^[0-9]{1,18}$' })
const strict = { additionalProperties: false }
const types = Type.Enum([...modificationTypes])

export const historyQuery = Type.Object(pageQuery, strict)

export const auditQuery = Type.Object(
  {
    ...pageQuery,
    document: Type.Optional(documentId),
    providerFileId: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    person: Type.Optional({ ...personId, description: 'Whoever they have been counts too' }),
    type: Type.Optional(Type.Array(types, { maxItems: 8, description: 'Repeated means or' })),
    since: Type.Optional(time),
  },
  strict,
)

const entry = Type.Object({
  id: number,
  documentId,
  providerFileId: text,
  version: number,
  type: types,
  command: text,
  changes: Type.Object({}, { additionalProperties: true, description: 'By field: from, to' }),
  redacted: Type.Boolean({
    description: 'A draft that is not yours: only the names of the fields',
  }),
  person: orNull(person),
  recordedPersonId: orNull(text),
  workspaceProvider: text,
  endpoint: text,
  eventId: orNull(number),
  at: time,
  identity: Type.Optional(text),
  userAgent: Type.Optional(orNull(text)),
  ipAddress: Type.Optional(orNull(text)),
  requestId: Type.Optional(orNull(text)),
})

export const entryList = Type.Object(
  { items: Type.Array(entry), nextCursor: orNull(text), hasMore: Type.Boolean() },
  { description: 'Newest first; identity and origin only with audit:read' },
)

export const syncQuery = Type.Object(
  { log: Type.Optional({ ...askedNumber, description: 'An entry of the history; the newest one' }) },
  strict,
)

const state = Type.Object({
  subscription: text,
  state: text,
  attempts: Type.Integer(),
  nextAttemptAt: orNull(time),
  code: orNull(text),
  error: orNull(text),
  blockedBy: orNull(number),
  reason: orNull(text),
  health: orNull(text),
  healthWhy: orNull(text),
})

const attempt = Type.Object({
  subscription: text,
  startedAt: time,
  durationMs: Type.Number(),
  worker: orNull(Type.String({ description: 'Null without outbox:read' })),
  outcome: text,
  code: orNull(text),
  error: orNull(Type.String({ description: 'Null without outbox:read' })),
})

const event = Type.Object({
  id: number,
  position: orNull(number),
  stage: text,
  type: orNull(text),
  createdAt: orNull(time),
  sequencedAt: orNull(time),
  bytes: orNull(Type.Integer()),
  log: orNull(Type.String({ description: 'The entry of the history this event came from' })),
})

const index = Type.Object({
  index: Type.Enum([...indexNames]),
  wanted: Type.Enum(['present', 'absent']),
  current: orNull(Type.Boolean()),
  indexedVersion: orNull(text),
  indexedPosition: orNull(number),
  why: orNull(text),
})

export const syncState = Type.Object(
  {
    documentId,
    version: number,
    log: number,
    searchable: Type.Boolean(),
    why: orNull(text),
    indexes: Type.Array(index),
    event: orNull(event),
    subscriptions: Type.Array(state),
    attempts: Type.Array(attempt),
  },
  { description: 'Where this change is, from the audit trail to every index' },
)
