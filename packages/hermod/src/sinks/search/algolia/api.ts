/**
 * The calls to Algolia that the engine needs. What the service refuses is thrown as AlgoliaFailure,
 * whoever makes the call: the plain HTTP of `algolia-http.ts`, or Algolia's own client in the tests.
 */
import type { Call } from '../engine.ts'

export interface AlgoliaApi {
  /** `body` is the text of `{"requests":[…]}`; all of them are accepted, or none. */
  batch(index: string, body: string, call?: Call): Promise<AlgoliaTask>
  taskStatus(index: string, taskID: number, call?: Call): Promise<'published' | 'notPublished'>
  /** Undefined: no such record, or no such index. */
  getObject(index: string, objectID: string, call?: Call): Promise<AlgoliaRecord | undefined>
  /** All of them are answered, or none. */
  search(queries: readonly AlgoliaQuery[], call?: Call): Promise<readonly AlgoliaAnswer[]>
  browse(index: string, params: object, call?: Call): Promise<AlgoliaPage>
  /** Undefined: no such index. */
  getSettings(index: string, call?: Call): Promise<AlgoliaSettings | undefined>
  /** An index that is not there is made. */
  setSettings(index: string, settings: AlgoliaSettings, call?: Call): Promise<AlgoliaTask>
  deleteIndex(index: string, call?: Call): Promise<AlgoliaTask>
  deleteBy(index: string, params: object, call?: Call): Promise<AlgoliaTask>
  listIndices(call?: Call): Promise<readonly string[]>
  close(): Promise<void>
}

export interface AlgoliaTask {
  readonly taskID: number
}

export interface AlgoliaRecord {
  readonly objectID: string
  readonly [attribute: string]: unknown
}

export interface AlgoliaSettings {
  readonly userData?: unknown
  readonly [setting: string]: unknown
}

export interface AlgoliaQuery {
  readonly indexName: string
  readonly query: string
  readonly [parameter: string]: unknown
}

export interface AlgoliaHit extends AlgoliaRecord {
  readonly _highlightResult?: unknown
  readonly _rankingInfo?: { readonly nbTypos?: number }
}

export interface AlgoliaAnswer {
  readonly hits: readonly AlgoliaHit[]
  readonly nbHits: number
  readonly facets?: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly exhaustive?: { readonly nbHits?: boolean; readonly facetsCount?: boolean }
}

export interface AlgoliaPage {
  readonly hits: readonly AlgoliaRecord[]
  /** Absent on the last page. */
  readonly cursor?: string
}

export interface AlgoliaFailureDetails {
  readonly retryAfter?: string | undefined
  /** Which record of a batch is meant, and its id. */
  readonly position?: number | undefined
  readonly objectID?: string | undefined
}

/** An answer that is not 2xx, in the service's words. */
export class AlgoliaFailure extends Error {
  override readonly name = 'AlgoliaFailure'
  readonly status: number
  readonly details: AlgoliaFailureDetails

  constructor(status: number, message: string, details: AlgoliaFailureDetails = {}) {
    super(message)
    this.status = status
    this.details = details
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof AlgoliaFailure && error.status === 404
}
