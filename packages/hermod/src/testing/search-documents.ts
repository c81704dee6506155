/** The index and the documents that the conformance suite for search engines works with. */
import type { IndexDefinition, SearchEngine, Upsert } from '../sinks/search/index.ts'

export const definition: IndexDefinition = {
  fields: {
    title: { kind: 'text', weight: 4 },
    summary: { kind: 'text', weight: 2 },
    content: { kind: 'text' },
    docNumber: { kind: 'identifier' },
    status: { kind: 'keyword', facet: true },
    product: { kind: 'keyword', facet: true },
    tags: { kind: 'keyword', facet: true, searchable: 1 },
    people: { kind: 'keyword', displayed: false },
    pages: { kind: 'number' },
    modifiedAt: { kind: 'date' },
    customFields: { kind: 'stored' },
  },
}

export interface Sample {
  readonly id: string
  readonly [field: string]: unknown
}

/** Five documents that differ in everything the cases ask about. */
export const samples: readonly Sample[] = [
  {
    id: 'rfc-51',
    title: 'Budget review',
    docNumber: 'RFC-051',
    status: 'In-Review',
    product: 'Ledger',
    tags: ['money', 'yearly'],
    people: ['anna', 'ben'],
    pages: 12,
    summary: 'How the yearly budget is approved',
    content: 'Every team plans its spending. The reviewers compare last year with this one.',
    modifiedAt: '2027-01-10T08:00:00Z',
    customFields: { colour: 'red', depth: [1, 2] },
  },
  {
    id: 'rfc-52',
    title: 'Café opening hours',
    docNumber: 'RFC-052',
    status: 'Approved',
    product: 'Canteen',
    tags: ['food'],
    people: ['anna'],
    pages: 3,
    summary: 'When the café is open',
    content: 'The kitchen closes at three. Guests may review the menu; the budget is fixed.',
    modifiedAt: '2027-01-20T08:00:00Z',
  },
  {
    id: 'prd-7',
    title: 'Release checklist',
    docNumber: 'PRD-007',
    status: 'Approved',
    product: 'Ledger',
    tags: ['yearly'],
    people: ['carl'],
    pages: 40,
    summary: 'Steps before a release',
    content: 'Write the notes, tag the version, tell everybody. Rollback takes an hour.',
    modifiedAt: '2027-02-01T08:00:00Z',
  },
  {
    id: 'prd-8',
    title: 'Rolling back a release',
    docNumber: 'PRD-008',
    status: 'WIP',
    product: 'Ledger',
    tags: [],
    people: ['ben'],
    pages: 40,
    summary: 'What to do when it went wrong',
    content: 'Tell everybody the version before is back. Then write down why.',
    modifiedAt: '2027-03-01T08:00:00Z',
  },
  {
    id: 'memo-1',
    title: 'Notes',
    docNumber: 'MEMO-1',
    status: 'WIP',
    product: 'Canteen',
    people: ['carl'],
    summary: null,
    content: 'Salt & pepper <b>are</b> in the kitchen.',
  },
]

export const upsertOf = ({ id, ...document }: Sample, version: bigint | number): Upsert => ({
  id,
  version: BigInt(version),
  json: JSON.stringify(document),
})

/** One engine and one index that no other case uses. */
export interface Stage {
  readonly engine: SearchEngine
  readonly index: string
  /** Waits until what was written can be found. */
  settle(): Promise<unknown>
}

export interface SearchCase {
  readonly name: string
  run(stage: Stage): Promise<void>
}

/** The five documents, with versions 1 to 5. */
export async function fill({ engine, index, settle }: Stage): Promise<void> {
  await engine.ensureIndex(index, definition)
  await engine.upsert(
    index,
    samples.map((sample, at) => upsertOf(sample, at + 1)),
  )
  await settle()
}
