/**
 * Where an index is filled from: rows of a table or of a query, read by key in short transactions,
 * each as the document that the subscription would send. Nothing is held between two pages.
 */
import type { Database } from '../database.ts'

export interface IndexSource {
  /** For people: `public.documents`. */
  readonly name: string
  /** One page in the order of the key. */
  page(db: Database, page: SourcePageRequest): Promise<SourcePage>
  /** The rows of these ids that belong to the index; the others are left out. */
  find(db: Database, ids: readonly string[]): Promise<SourceRows>
  /** Exact up to 100,000, estimated beyond. */
  count(db: Database): Promise<number>
  /** Ids of rows picked at random. */
  sample(db: Database, count: number): Promise<readonly string[]>
}

export interface SourcePageRequest {
  /** The `next` of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

export interface SourceRows {
  readonly documents: readonly SourceDocument[]
  /** Rows that cannot be made a document, and why. */
  readonly refused: readonly RefusedRow[]
  /** The highest log position before the rows were read: what they hold is at least as new. */
  readonly position: bigint
}

export interface SourcePage extends SourceRows {
  /** Rows read, whether they belong to the index or not. */
  readonly rows: number
  /** Absent at the end. */
  readonly next?: string
}

export interface SourceDocument {
  readonly id: string
  /** The whole document as JSON text. */
  readonly json: string
}

export interface RefusedRow {
  readonly id: string
  readonly why: string
}

/** The current documents of these ids: what a subscription's load() returns. */
export async function loadFrom(
  source: IndexSource,
  db: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, unknown>> {
  const { documents, refused } = await source.find(db, ids)
  const [bad] = refused
  if (bad !== undefined) throw new Error(`${source.name} ${bad.id}: ${bad.why}`)
  return new Map(documents.map(({ id, json }) => [id, JSON.parse(json)]))
}
