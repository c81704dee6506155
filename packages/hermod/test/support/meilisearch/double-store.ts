/** Indexes of the double of Meilisearch, and what each kind of task does to them. */

import type { Document } from './double-filter.ts'
import { parseFilter } from './double-filter.ts'
import type { SearchSettings } from './double-search.ts'
import { wordPattern } from './double-words.ts'

export interface ErrorBody {
  readonly message: string
  readonly code: string
  readonly type: string
  readonly link: string
}

export class Refusal extends Error {
  readonly status: number
  readonly body: ErrorBody
  readonly headers: Record<string, string>

  constructor(status: number, code: string, message: string, type = 'invalid_request', headers = {}) {
    super(message)
    this.status = status
    this.body = { message, code, type, link: `https://docs.meilisearch.com/errors#${code}` }
    this.headers = headers
  }
}

export const noIndex = (uid: string) => new Refusal(404, 'index_not_found', `Index \`${uid}\` not found.`)

export type Settings = Record<string, unknown>

export interface Index {
  primaryKey: string | null
  readonly createdAt: string
  updatedAt: string
  settings: Settings
  readonly documents: Map<string, Document>
}

const defaults: Settings = {
  displayedAttributes: ['*'],
  searchableAttributes: ['*'],
  filterableAttributes: [],
  sortableAttributes: [],
  stopWords: [],
  synonyms: {},
  distinctAttribute: null,
  rankingRules: ['words', 'typo', 'proximity', 'attribute', 'sort', 'exactness'],
  nonSeparatorTokens: [],
  separatorTokens: [],
  dictionary: [],
  proximityPrecision: 'byWord',
  typoTolerance: {
    enabled: true,
    minWordSizeForTypos: { oneTypo: 5, twoTypos: 9 },
    disableOnWords: [],
    disableOnAttributes: [],
    disableOnNumbers: false,
  },
  faceting: { maxValuesPerFacet: 100, sortFacetValuesBy: { '*': 'alpha' } },
  pagination: { maxTotalHits: 1000 },
  searchCutoffMs: null,
  localizedAttributes: null,
  facetSearch: true,
  prefixSearch: 'indexingTime',
}

/** Kept sorted by the server. */
const SETS = new Set([
  ...['filterableAttributes', 'sortableAttributes', 'stopWords', 'dictionary'],
  ...['separatorTokens', 'nonSeparatorTokens'],
])
const fieldsMax = 65_535
const vectorsMax = 255
/** Deeper JSON cannot be read by the server. */
const depthMax = 127
const idFits = (id: unknown) =>
  Number.isSafeInteger(id) || (typeof id === 'string' && /^[A-Za-z0-9_-]{1,511}$/.test(id))

export type Work =
  | {
      readonly type: 'documentAdditionOrUpdate'
      readonly merge: boolean
      readonly documents: readonly Document[]
      readonly primaryKey: string | undefined
    }
  | {
      readonly type: 'documentDeletion'
      readonly ids: readonly (string | number)[] | undefined
      readonly filter?: unknown
    }
  | { readonly type: 'indexCreation'; readonly primaryKey: string | null }
  | { readonly type: 'indexDeletion' }
  | { readonly type: 'settingsUpdate'; readonly settings: Settings | null }
  | { readonly type: 'indexSwap'; readonly swaps: readonly (readonly [string, string])[] }

export class Store {
  #indexes = new Map<string, Index>()
  #dropped = false

  /** True once after an index was deleted. */
  takeDropped(): boolean {
    const dropped = this.#dropped
    this.#dropped = false
    return dropped
  }

  uids(): string[] {
    return [...this.#indexes.keys()].sort()
  }

  get(uid: string): Index {
    const index = this.#indexes.get(uid)
    if (index === undefined) throw noIndex(uid)
    return index
  }

  /**
   * What is only met while indexing, and fails everything that was merged into the batch. `internal` does not say which
   * document it was.
   */
  problemIn(uid: string, documents: readonly Document[]): Refusal | undefined {
    if (documents.some(isUnreadable)) {
      const says = `Index \`${uid}\`: Internal error: the documents of the batch could not be read by the indexer.`
      return new Refusal(500, 'internal', says, 'internal')
    }
    if (documents.some((document) => Object.keys(document).length > fieldsMax)) {
      const says = `Index \`${uid}\`: A document cannot contain more than 65,535 fields.`
      return new Refusal(400, 'max_fields_limit_exceeded', says)
    }
    return this.#vectorProblem(uid, documents) ?? this.#geoProblem(uid, documents)
  }

  #vectorProblem(uid: string, documents: readonly Document[]): Refusal | undefined {
    const key = this.#indexes.get(uid)?.primaryKey ?? 'id'
    const many = (vectors: unknown) => Object.values(vectors ?? {}).some((one) => vectorsIn(one) > vectorsMax)
    const wrong = documents.find(({ _vectors: vectors }) => many(vectors))
    if (wrong === undefined) return undefined
    const says = `Index \`${uid}\`: too many vectors in the document with the id: \`${JSON.stringify(wrong[key])}\`, expected at most 255`
    return new Refusal(400, 'too_many_vectors', says)
  }

  #geoProblem(uid: string, documents: readonly Document[]): Refusal | undefined {
    const key = this.#indexes.get(uid)?.primaryKey ?? 'id'
    const wrong = documents.find(({ _geo: geo }) => geo !== undefined && geo !== null && !isPlace(geo))
    if (wrong === undefined) return undefined
    const says = `Index \`${uid}\`: Could not find latitude nor longitude in the document with the id: \`${JSON.stringify(wrong[key])}\`. Was expecting \`_geo.lat\` and \`_geo.lng\` fields.`
    return new Refusal(400, 'invalid_document_geo_field', says)
  }

  /** Throws a Refusal and changes nothing, or does all of it and answers with the details. */
  run(uid: string | null, work: Work): Record<string, unknown> {
    switch (work.type) {
      case 'documentAdditionOrUpdate':
        return this.#add(uid as string, work)
      case 'documentDeletion':
        return this.#delete(this.get(uid as string), work)
      case 'indexCreation':
        return this.#create(uid as string, work.primaryKey)
      case 'indexDeletion':
        return this.#drop(uid as string)
      case 'settingsUpdate':
        return this.#set(uid as string, work.settings)
      case 'indexSwap':
        return this.#swap(work.swaps)
    }
  }

  #made(primaryKey: string | null): Index {
    const now = new Date().toISOString()
    const settings = structuredClone(defaults)
    return { primaryKey, createdAt: now, updatedAt: now, settings, documents: new Map() }
  }

  #create(uid: string, primaryKey: string | null) {
    if (this.#indexes.has(uid)) {
      throw new Refusal(409, 'index_already_exists', `Index \`${uid}\` already exists.`)
    }
    this.#indexes.set(uid, this.#made(primaryKey))
    return { primaryKey }
  }

  #drop(uid: string) {
    const { documents } = this.get(uid)
    this.#dropped = true
    this.#indexes.delete(uid)
    return { deletedDocuments: documents.size }
  }

  /** Documents, settings and everything else change places. */
  #swap(swaps: readonly (readonly [string, string])[]) {
    for (const uid of swaps.flat()) this.get(uid)
    for (const [one, other] of swaps) {
      const [first, second] = [this.get(one), this.get(other)]
      this.#indexes.set(one, second)
      this.#indexes.set(other, first)
    }
    return { swaps: swaps.map((indexes) => ({ indexes, rename: false })) }
  }

  #set(uid: string, settings: Settings | null) {
    const index = this.#indexes.get(uid) ?? this.#made(null)
    this.#indexes.set(uid, index)
    index.settings = settings === null ? structuredClone(defaults) : merged(index.settings, settings)
    index.updatedAt = new Date().toISOString()
    return settings ?? {}
  }

  /** The index is made when it is not there, as the server does. */
  #add(uid: string, work: Extract<Work, { type: 'documentAdditionOrUpdate' }>) {
    const index = this.#indexes.get(uid) ?? this.#made(null)
    const key = keyFor(uid, index, work)
    const ready = work.documents.map((document) => [checkedId(document, key), document] as const)
    index.primaryKey = key
    for (const [id, document] of ready) {
      const before = work.merge ? index.documents.get(id) : undefined
      index.documents.set(id, { ...before, ...document })
    }
    index.updatedAt = new Date().toISOString()
    this.#indexes.set(uid, index)
    return { receivedDocuments: ready.length, indexedDocuments: ready.length }
  }

  #delete({ documents, settings }: Index, { ids, filter }: Extract<Work, { type: 'documentDeletion' }>) {
    const holds = filter === undefined ? undefined : parseFilter(filter, filterableIn(settings))
    const all = [...documents.keys()].filter((id) => holds?.(documents.get(id) as Document) ?? true)
    const gone = (ids?.map(String) ?? all).filter((id) => documents.delete(id))
    return { providedIds: ids?.length ?? 0, deletedDocuments: gone.length }
  }
}

function keyFor(
  uid: string,
  index: Index,
  { primaryKey, documents }: Extract<Work, { type: 'documentAdditionOrUpdate' }>,
): string {
  if (index.primaryKey !== null && primaryKey !== undefined && primaryKey !== index.primaryKey) {
    const says = `Index \`${uid}\`: Index already has a primary key: \`${index.primaryKey}\`.`
    throw new Refusal(400, 'index_primary_key_already_exists', says)
  }
  const given = index.primaryKey ?? primaryKey
  if (given !== undefined) return given
  const candidates = Object.keys(documents[0] ?? {}).filter((name) => /id$/i.test(name))
  if (candidates.length === 1) return candidates[0] as string
  const code = candidates.length === 0 ? 'no_candidate_found' : 'multiple_candidates_found'
  const says = `Index \`${uid}\`: The primary key inference failed as the engine found ${candidates.length} fields ending with \`id\`.`
  throw new Refusal(400, `index_primary_key_${code}`, says)
}

function checkedId(document: Document, key: string): string {
  const id = document[key]
  if (id === undefined) {
    const says = `Document doesn't have a \`${key}\` attribute: \`${JSON.stringify(document)}\`.`
    throw new Refusal(400, 'missing_document_id', says)
  }
  if (!idFits(id)) {
    const says = `Document identifier \`${JSON.stringify(id)}\` is invalid. A document identifier can be of type integer or string, only composed of alphanumeric characters (a-z A-Z 0-9), hyphens (-) and underscores (_), and can not be more than 511 bytes.`
    throw new Refusal(400, 'invalid_document_id', says)
  }
  return String(id)
}

/** Numbers without end, JSON that is too deep, `_vectors` that is no object. */
function isUnreadable(document: Document): boolean {
  const { _vectors: vectors } = document
  const strange = vectors !== undefined && vectors !== null && (typeof vectors !== 'object' || Array.isArray(vectors))
  return strange || isUnreadableValue(document, 1)
}

function isUnreadableValue(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return !Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return false
  return depth > depthMax || Object.values(value).some((one) => isUnreadableValue(one, depth + 1))
}

function vectorsIn(embedder: unknown): number {
  const { embeddings = embedder } = (embedder ?? {}) as { embeddings?: unknown }
  return Array.isArray(embeddings) && Array.isArray(embeddings[0]) ? embeddings.length : 1
}

function isPlace(geo: unknown): boolean {
  const { lat = 'x', lng = 'x' } = geo as { lat?: unknown; lng?: unknown }
  return Number.isFinite(Number(lat)) && Number.isFinite(Number(lng))
}

function merged(there: Settings, given: Settings): Settings {
  const result = { ...there }
  for (const [name, value] of Object.entries(given)) {
    if (value === null) result[name] = structuredClone(defaults[name])
    else if (SETS.has(name)) result[name] = [...new Set(value as string[])].sort()
    else if (isGroup(value) && isGroup(there[name])) result[name] = merged(there[name] as Settings, value)
    else result[name] = value
  }
  return result
}

function isGroup(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const isKnownSetting = (name: string) => name in defaults

export function filterableIn(settings: Settings): Set<string> {
  return new Set(settings.filterableAttributes as string[])
}

export function searchSettings(settings: Settings): SearchSettings {
  const typo = settings.typoTolerance as Settings
  const sizes = typo.minWordSizeForTypos as { oneTypo: number; twoTypos: number }
  const faceting = settings.faceting as Settings
  return {
    searchableAttributes: settings.searchableAttributes as string[],
    displayedAttributes: settings.displayedAttributes as string[],
    rankingRules: settings.rankingRules as string[],
    stopWords: settings.stopWords as string[],
    word: wordPattern(settings.separatorTokens as string[]),
    typo: {
      enabled: typo.enabled as boolean,
      ...sizes,
      disableOnAttributes: typo.disableOnAttributes as string[],
      disableOnWords: typo.disableOnWords as string[],
    },
    maxValuesPerFacet: faceting.maxValuesPerFacet as number,
    sortFacetValuesBy: faceting.sortFacetValuesBy as Record<string, 'alpha' | 'count'>,
  }
}
