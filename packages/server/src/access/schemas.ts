/** The shapes of the token routes. */
import { Type } from 'typebox'
import { pageQuery } from '../http/paging.ts'
import { scopable } from './rules.ts'

const id = Type.String({ pattern: '^[1-9][0-9]{0,17}$', examples: ['17'] })
const time = Type.String({ format: 'date-time', examples: ['2027-03-01T08:00:00.000Z'] })
const scopes = Type.Array(Type.Enum(scopable), {
  minItems: 1,
  maxItems: scopable.length,

  description: 'What the token may do; at most what its owner may',
  examples: [['document:read', 'search:read']],
})

export const idParams = Type.Object({ id })

export const listQuery = Type.Object(pageQuery, { additionalProperties: false })

export const adminListQuery = Type.Object({ ...pageQuery, person: Type.Optional(id) }, { additionalProperties: false })

export const newTokenBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, examples: ['nightly export'] }),
    scopes,
    expiresAt: Type.Optional({ ...time, description: 'Within a year; 90 days when left out' }),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'nightly export', scopes: ['document:read', 'search:read'] }],
  },
)

const record = {
  id,
  personId: id,
  name: Type.String(),
  prefix: Type.String({ description: 'What you recognise it by', examples: ['4f1c09ab'] }),
  scopes: Type.Array(Type.String()),
  createdAt: time,
  expiresAt: time,
  lastUsedAt: Type.Union([time, Type.Null()]),
  revokedAt: Type.Union([time, Type.Null()]),
}

export const token = Type.Object(record)

export const newToken = Type.Object(
  {
    ...record,
    secret: Type.Union([Type.String(), Type.Null()], {
      description: 'Shown this once; null when the request was a repetition',
    }),
  },
  { description: 'The token was made' },
)

export const tokens = Type.Object(
  {
    items: Type.Array(token),
    nextCursor: Type.Union([Type.String(), Type.Null()]),
    hasMore: Type.Boolean(),
  },
  { description: 'Newest first' },
)
