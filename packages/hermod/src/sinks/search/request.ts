/**
 * What can be asked of an index, and what comes back. A filter that cannot be applied is refused,
 * never left out: access rules are filters.
 */

export interface SearchRequest {
  /** What a person typed: words, `"a phrase"`, `-without`. Nothing = everything, newest first. */
  readonly query?: string
  /** All of them hold. */
  readonly filters?: Filters
  /** Keyword fields declared as facets: values with counts that ignore the field's own filter. */
  readonly facets?: readonly string[]
  /** Number and date fields; relevance when left out. Ties are broken by id. */
  readonly sort?: readonly Sort[]
  /** Text and identifier fields to mark the found words in. */
  readonly highlights?: readonly string[]
  /** 0 when left out. */
  readonly offset?: number
  /** 20 when left out, at most 1,000; 0 = only total and facets. */
  readonly limit?: number
  /** Total and facets are counted up to this many documents; 10,000 when left out. */
  readonly countMax?: number
  readonly generation?: string
  readonly signal?: AbortSignal
}

export type Filters = Readonly<Record<string, Filter>>

export type Value = string | number | boolean

/** A plain value means equal; an empty `anyOf` matches nothing. */
export type Filter = Value | AnyOf | NoneOf | Range

export interface AnyOf {
  readonly anyOf: readonly Value[]
}

/** Also matches documents without the field. */
export interface NoneOf {
  readonly noneOf: readonly Value[]
}

/** Number and date fields; bounds are included unless their name says otherwise. */
export interface Range {
  readonly from?: Bound
  readonly to?: Bound
  readonly above?: Bound
  readonly below?: Bound
}

/** Dates: a Date, an ISO time with its zone, or milliseconds since 1970. */
export type Bound = number | string | Date

export interface Sort {
  readonly field: string
  readonly direction?: 'ascending' | 'descending'
}

export interface SearchResult {
  readonly hits: readonly Hit[]
  readonly total: number
  /** False: there are more than `total`. */
  readonly totalExact: boolean
  readonly facets: Readonly<Record<string, readonly FacetCount[]>>
  /** False: counted over some of the documents only. */
  readonly facetsExact: boolean
  /** Little was found, so similar words were searched too. */
  readonly corrected: boolean
}

export interface Hit {
  readonly id: string
  readonly version: bigint
  /** Comparable within one result only. */
  readonly score: number
  /** The displayed fields. */
  readonly document: Readonly<Record<string, unknown>>
  /** Plain text in parts, for the fields asked for that the document has. */
  readonly highlights: Readonly<Record<string, readonly HighlightPart[]>>
}

export interface FacetCount {
  readonly value: string
  readonly count: number
}

/** Text as it is in the document, not HTML: escape it, or use `markedHtml`. */
export interface HighlightPart {
  readonly text: string
  readonly marked: boolean
}
