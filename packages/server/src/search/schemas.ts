/** The shapes of searching. */
import { Type } from 'typebox'
import { indexNames } from '../events.ts'
import { exactFields, facetFields, rangeFields } from './request.ts'

const text = Type.String()
const many = (description: string, examples: string[], maxItems = 50) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 500 }), {
      maxItems,
      description,
      examples: [examples],
    }),
  )

export const searchQuery = Type.Object(
  {
    q: Type.String({
      default: '',
      maxLength: 1_000,
      examples: ['ranking "second try" -obsolete'],
      description: 'Words, "a phrase", -without; nothing = everything, newest first',
    }),
    index: Type.Enum([...indexNames], { default: 'documents' }),
    filter: many(
      `field:value (repeated = or) for ${exactFields.join(', ')}; field>=value, <=, >, < for ${rangeFields.join(', ')}`,
      ['status:Approved', 'modifiedAt>=2026-01-01T00:00:00Z'],
    ),
    facets: many(`Count the values of ${facetFields.join(', ')}`, ['status', 'product'], 20),
    sort: many(`One of ${rangeFields.join(', ')}; with a minus descending`, ['-modifiedAt'], 5),
    limit: Type.Integer({ minimum: 0, maximum: 100, default: 20 }),
    offset: Type.Integer({ minimum: 0, maximum: 10_000, default: 0 }),
  },
  { additionalProperties: false },
)

const part = Type.Object({ text, marked: Type.Boolean() })

const hit = Type.Object({
  id: text,
  position: Type.String({ description: 'Of the event that brought it here' }),
  score: Type.Number(),
  document: Type.Object({}, { additionalProperties: true }),
  highlights: Type.Unsafe<Record<string, { text: string; marked: boolean }[]>>({
    type: 'object',
    additionalProperties: { type: 'array', items: part },
    description: 'Plain text in parts, by field; escape it like any text',
  }),
})

export const found = Type.Object(
  {
    index: Type.Enum([...indexNames]),
    hits: Type.Array(hit),
    total: Type.Integer(),
    totalExact: Type.Boolean(),
    nextOffset: Type.Union([Type.Integer(), Type.Null()]),
    facets: Type.Unsafe<Record<string, { value: string; count: number }[]>>({
      type: 'object',
      additionalProperties: {
        type: 'array',
        items: Type.Object({ value: text, count: Type.Integer() }),
      },
    }),
    facetsExact: Type.Boolean(),
    corrected: Type.Boolean({ description: 'Similar words were searched too' }),
  },
  { description: 'What was found' },
)
