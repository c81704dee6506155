/** The shapes of the people routes. */
import { Type } from 'typebox'
import { pageQuery } from '../http/paging.ts'
import { identityTypes } from './rules.ts'

const id = Type.String({ pattern: '^[1-9][0-9]{0,17}$', examples: ['17'] })
const time = Type.String({ format: 'date-time', examples: ['2027-03-01T08:00:00.000Z'] })
const role = Type.Enum(['reader', 'editor', 'operator', 'admin'], { examples: ['editor'] })
const displayName = Type.String({ minLength: 1, maxLength: 400, examples: ['Ada Lovelace'] })
const reason = Type.String({
  minLength: 1,
  maxLength: 1_000,
  examples: ['Same person, two accounts'],
})
const closed = { additionalProperties: false } as const
const orNull = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()])

export const idParams = Type.Object({ id })
export const identityParams = Type.Object({ id, identityId: id })
export const mergeParams = Type.Object({ mergeId: id })

export const listQuery = Type.Object(
  {
    ...pageQuery,
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        examples: ['ada'],
        description: 'How the name begins, or a whole e-mail address; admins may begin one',
      }),
    ),
  },
  closed,
)
export const auditQuery = Type.Object(pageQuery, closed)
export const dryRunQuery = Type.Object({ dryRun: Type.Boolean({ default: false, description: 'Count only' }) }, closed)

const identity = Type.Object({
  id,
  type: Type.Enum([...identityTypes]),
  provider: Type.String({ description: 'Name of the issuer', examples: ['google'] }),
  value: Type.String({ examples: ['ada@example.org'] }),
  primary: Type.Boolean(),
  verifiedAt: orNull(time),
  createdAt: time,
})

const merge = Type.Object({
  id,
  from: id,
  fromName: Type.String(),
  reason: Type.String(),
  doneAt: time,
})

const everybodySees = { id, displayName: Type.String({ examples: ['Ada Lovelace'] }) }

/** Fields that the caller may not see are left out. */
export const person = Type.Object(
  {
    ...everybodySees,
    createdAt: time,
    updatedAt: time,
    role: Type.Optional(role),
    identities: Type.Optional(Type.Array(identity, { description: 'For admins and oneself' })),
    merges: Type.Optional(Type.Array(merge, { description: 'Who was merged into it; for admins' })),
  },
  { description: 'The person; of a merged one, whoever it was merged into' },
)

export const me = Type.Object(
  {
    ...everybodySees,
    createdAt: time,
    updatedAt: time,
    role: Type.Enum(['reader', 'editor', 'operator', 'admin'], { description: 'In effect now' }),
    identity: Type.String({
      description: 'The identity used at this moment',
      examples: ['email:google:ada@example.org'],
    }),
    permissions: Type.Array(Type.String()),
    signedInAt: orNull(time),
    identities: Type.Array(identity),
  },
  { description: 'You' },
)

export const people = Type.Object(
  {
    items: Type.Array(Type.Object({ ...everybodySees, role: Type.Optional(role) })),
    nextCursor: Type.Union([Type.String(), Type.Null()]),
    hasMore: Type.Boolean(),
  },
  { description: 'By name' },
)

export const newIdentityBody = Type.Object(
  {
    type: Type.Enum([...identityTypes]),
    provider: Type.String({ pattern: '^[a-z][a-z0-9_-]{0,62}$', examples: ['google'] }),
    value: Type.String({ minLength: 1, maxLength: 512, examples: ['ada.king@example.org'] }),
    verified: Type.Boolean({
      default: false,
      description: 'You vouch for it: a log-in with this address may join the person by itself',
    }),
  },
  { ...closed, examples: [{ type: 'email', provider: 'google', value: 'ada.king@example.org' }] },
)

export const newPersonBody = Type.Object(
  { displayName, role: Type.Optional(role), identity: Type.Optional(newIdentityBody) },
  { ...closed, examples: [{ displayName: 'Ada Lovelace', role: 'editor' }] },
)

export const personPatch = Type.Object(
  { displayName: Type.Optional(displayName), role: Type.Optional(role) },
  { ...closed, minProperties: 1, examples: [{ displayName: 'Ada King' }] },
)

export const mergeBody = Type.Object(
  { into: Type.Optional(id), from: Type.Optional(id), reason },
  {
    ...closed,
    description: 'Either `into` (this person goes) or `from` (this person stays)',
    examples: [{ into: '17', reason: 'Same person, two accounts' }],
  },
)

export const undoBody = Type.Object({ reason }, { ...closed, examples: [{ reason: 'They are two people after all' }] })

const counts = Type.Record(Type.String(), Type.Integer(), {
  description: 'Rows by column',
  examples: [{ 'person_identity.person_id': 2, 'document.created_by': 5 }],
})

export const merged = Type.Object(
  {
    dryRun: Type.Boolean(),
    mergeId: Type.Optional(id),
    from: Type.Object({ ...everybodySees, role }),
    into: Type.Object({ ...everybodySees, role }),
    counts,
  },
  { description: 'What the merge changed, or would change' },
)

export const unmerged = Type.Object({ mergeId: id, from: id, into: id }, { description: 'They are two people again' })

export const audit = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        id,
        action: Type.String({ examples: ['linked'] }),
        changes: Type.Record(Type.String(), Type.Unknown()),
        reason: Type.Union([Type.String(), Type.Null()]),
        actorId: orNull(id),
        identity: Type.Union([Type.String(), Type.Null()]),
        endpoint: Type.Union([Type.String(), Type.Null()]),
        requestId: Type.Union([Type.String(), Type.Null()]),
        createdAt: time,
      }),
    ),
    nextCursor: Type.Union([Type.String(), Type.Null()]),
    hasMore: Type.Boolean(),
  },
  { description: 'The newest first' },
)

const table = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_]{0,62}(\\.[A-Za-z_][A-Za-z0-9_]{0,62})?$',
  examples: ['public.users'],
})

export const importBody = Type.Object(
  {
    table: Type.Optional({ ...table, description: 'public.users when left out' }),
    documents: Type.Optional({
      ...table,
      description: 'Legacy table of documents; `documents` beside the users when left out',
    }),
    dryRun: Type.Boolean({ default: false, description: 'Count only' }),
  },
  { ...closed, examples: [{ table: 'public.users', dryRun: true }] },
)

export const imported = Type.Object(
  {
    dryRun: Type.Boolean(),
    rows: Type.Integer({ description: 'Users read' }),
    imported: Type.Integer(),
    unchanged: Type.Integer({ description: 'Imported before' }),
    refused: Type.Integer(),
    problems: Type.Array(
      Type.Object({
        row: Type.String(),
        value: Type.Union([Type.String(), Type.Null()]),
        says: Type.String(),
      }),
      { description: 'The first 1,000 refused rows' },
    ),
    documents: Type.Object({
      modifiersSet: Type.Integer(),
      providersSet: Type.Integer(),
      ownModifiersSet: Type.Integer(),
      skipped: Type.Array(Type.String()),
    }),
  },
  { description: 'What was imported, or would be' },
)
