/** The shapes of the document routes: what comes in, what goes out. */
import { type TSchema, Type } from 'typebox'
import { workspaceProviders } from '../config.ts'
import { pageQuery } from '../http/paging.ts'
import { decisions, statuses } from './document.ts'

export const contentCharsMax = 2_097_152

export const personId = Type.String({ pattern: '^[1-9][0-9]{0,17}$', examples: ['17'] })
export const documentId = Type.String({
  format: 'uuid',
  examples: ['5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11'],
})
export const time = Type.String({ format: 'date-time', examples: ['2026-11-15T08:00:00.000Z'] })
export const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()])

const people = Type.Array(personId, {
  maxItems: 100,
  uniqueItems: true,
  description: 'Ids of people',
})
const customName = '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'
const customScalar: TSchema[] = [
  Type.String({ maxLength: 1_000 }),
  Type.Number(),
  Type.Boolean(),
  Type.Array(Type.String({ maxLength: 200 }), { maxItems: 50 }),
]

/** Flat, at most 50 of them; `patch` also takes null, which removes one. */
function customFields(patch: boolean) {
  const value = Type.Union(patch ? [...customScalar, Type.Null()] : customScalar)
  return Type.Unsafe<Record<string, string | number | boolean | string[] | null>>({
    type: 'object',
    maxProperties: 50,
    additionalProperties: false,
    patternProperties: { [customName]: value },
    description: patch ? 'Merged by name; null removes one' : 'Your own fields',
    examples: [{ team: 'Search' }],
  })
}

const texts = {
  title: Type.String({ minLength: 1, maxLength: 500, examples: ['Ranking, second try'] }),
  docType: Type.String({ minLength: 1, maxLength: 50, examples: ['RFC'] }),
  product: Type.String({ minLength: 1, maxLength: 100, examples: ['Labs'] }),
}

const optionals = {
  summary: Type.String({ maxLength: 10_000 }),
  content: Type.String({ maxLength: contentCharsMax }),
  tags: Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
    maxItems: 50,
    uniqueItems: true,
  }),
  owners: Type.Array(personId, { ...people, minItems: 1, description: 'You when left out' }),
  contributors: people,
  approvers: people,
}

const allOptional = <T extends Record<string, TSchema>>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)])) as {
    [K in keyof T]: ReturnType<typeof Type.Optional<T[K]>>
  }

const strict = { additionalProperties: false }
const example = { title: 'Ranking, second try', docType: 'RFC', product: 'Labs', content: 'Why …' }

const provider = Type.Enum([...workspaceProviders], { description: 'Where its file lives' })
const creation = {
  ...texts,
  ...allOptional(optionals),
  customFields: Type.Optional(customFields(false)),
  workspaceProvider: Type.Optional(provider),
  providerFileId: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Its id at google, s3 or azure' }),
  ),
}

export const newDraftBody = Type.Object(creation, { ...strict, examples: [example] })

const published = Type.Enum(['In-Review', 'Approved', 'Obsolete'])

export const newDocumentBody = Type.Object(
  { ...creation, status: Type.Optional(published) },
  { ...strict, examples: [{ ...example, workspaceProvider: 'google', providerFileId: '1AbC' }] },
)

const edits = {
  ...allOptional({ ...texts, ...optionals }),
  customFields: Type.Optional(customFields(true)),
}

export const editDraftBody = Type.Object(edits, {
  ...strict,
  minProperties: 1,
  examples: [{ title: 'Ranking, third try', customFields: { team: null } }],
})

export const editDocumentBody = Type.Object(
  { ...edits, status: Type.Optional(Type.Enum([...statuses])) },
  { ...strict, minProperties: 1, examples: [{ status: 'Obsolete' }] },
)

export const replaceDocumentBody = Type.Object(
  {
    ...texts,
    ...allOptional(optionals),
    owners: optionals.owners,
    customFields: Type.Optional(customFields(false)),
    status: Type.Optional(Type.Enum([...statuses])),
  },
  { ...strict, examples: [{ ...example, owners: ['17'] }] },
)

const comment = Type.Optional(Type.String({ maxLength: 10_000 }))

export const decisionBody = Type.Object({ comment }, { ...strict, examples: [{ comment: 'Clear now, thank you.' }] })

export const changeDecisionBody = Type.Object(
  { decision: Type.Optional(Type.Enum([...decisions])), comment },
  { ...strict, minProperties: 1, examples: [{ decision: 'changes-requested' }] },
)

export const idParams = Type.Object({ id: documentId })

export const ifMatch = Type.Object({
  'if-match': Type.Optional(Type.String({ description: 'The ETag you read, or *' })),
})

export const keyHeader = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({ description: 'Any new text; repeated, the first answer comes again' }),
  ),
})

export const bothHeaders = Type.Object({ ...ifMatch.properties, ...keyHeader.properties })

const many = (schema: TSchema, description: string) => Type.Optional(Type.Array(schema, { maxItems: 50, description }))

const filters = {
  product: many(texts.product, 'Repeated means or'),
  docType: many(texts.docType, 'Repeated means or'),
  owner: many(personId, 'Owned by one of these people'),
  person: many(personId, 'Last modified by one of these people'),
  provider: many(provider, 'Where the file lives'),
  since: Type.Optional({ ...time, description: 'Modified then or later' }),
}

export const draftListQuery = Type.Object({ ...pageQuery, ...filters }, strict)
export const documentListQuery = Type.Object(
  { ...pageQuery, ...filters, status: many(published, 'Repeated means or') },
  strict,
)

export const person = Type.Object({ id: personId, displayName: Type.String() })

const summary = {
  id: documentId,
  version: Type.String({ description: 'Its ETag, without the quotes', examples: ['3'] }),
  status: Type.Enum([...statuses]),
  ...texts,
  docNumber: orNull(Type.Integer()),
  docKey: orNull(Type.String({ examples: ['Labs-051'] })),
  summary: Type.String(),
  tags: Type.Array(Type.String()),
  customFields: Type.Object({}, { additionalProperties: true }),
  owners: Type.Array(person),
  contributors: Type.Array(person),
  approvers: Type.Array(person),
  approvals: Type.Array(
    Type.Object({
      personId,
      decision: Type.Enum([...decisions]),
      comment: Type.String(),
      decidedAt: time,
    }),
  ),
  workspaceProvider: provider,
  providerFileId: Type.String(),
  createdBy: person,
  lastModifiedBy: orNull(person),
  createdAt: time,
  modifiedAt: time,
  publishedAt: orNull(time),
}

export const wholeDocument = Type.Object(
  { ...summary, content: Type.String() },
  { description: 'The document at the version of its ETag' },
)

export const documentList = Type.Object(
  {
    items: Type.Array(Type.Object(summary)),
    nextCursor: orNull(Type.String()),
    hasMore: Type.Boolean(),
  },
  { description: 'Last modified first, without content' },
)
