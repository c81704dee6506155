/** Searching and listing documents at the double of Meilisearch: parameters, pages, shown fields. */
import { type Document, FilterError, parseFilter } from './double-filter.ts'
import { type Body, refuseUnknown } from './double-payload.ts'
import { facetsOf, find, formatted, matchesPosition, scoreOf } from './double-search.ts'
import { filterableIn, type Index, Refusal, searchSettings } from './double-store.ts'

export function searchIn(index: Index, uid: string, query: Body) {
  refuseUnknown(query, SEARCH_PARAMETERS)
  const asked = query as SearchBody
  const { q = '', sort = [], matchingStrategy = 'last', facets } = asked
  if (typeof q !== 'string') throw new Refusal(400, 'invalid_search_q', 'Invalid value type at `.q`: expected a string')
  checkSort(sort, index, uid, 'invalid_search_sort')
  checkFacets(facets, index, uid)
  const settings = searchSettings(index.settings)
  const holds = conditionOf(asked.filter, index, uid, 'invalid_search_filter')
  const found = find(index.documents.values(), settings, { q, holds, sort, matchingStrategy })
  const { maxTotalHits } = index.settings.pagination as { maxTotalHits: number }
  const reachable = found.slice(0, maxTotalHits)
  const { from, to, paging: said } = pageOf(asked, reachable.length)
  const hits = reachable.slice(from, to).map((hit) => {
    const { typos } = hit
    const marks = asked.attributesToHighlight
    return {
      ...only(hit.document, displayed(asked.attributesToRetrieve, settings.displayedAttributes)),
      ...(marks !== undefined && {
        _formatted: formatted(hit.document, q, settings, {
          attributes: marks,
          before: asked.highlightPreTag ?? '<em>',
          after: asked.highlightPostTag ?? '</em>',
        }),
      }),
      ...(asked.showMatchesPosition && {
        _matchesPosition: matchesPosition(hit.document, q, settings),
      }),
      ...(asked.showRankingScore && { _rankingScore: scoreOf(hit) }),
      ...(asked.showRankingScoreDetails && {
        _rankingScoreDetails: {
          ...(hit.words > 0 && {
            typo: { order: 1, typoCount: typos, maxTypoCount: 2, score: 1 / (1 + typos) },
          }),
        },
      }),
    }
  })
  const distribution =
    facets === undefined ? {} : { facetDistribution: facetsOf(found, facets, settings), facetStats: {} }
  return { hits, query: q, processingTimeMs: 0, ...said, ...distribution }
}

export function fetchFrom(index: Index, uid: string, body: Body, since: (version: string) => boolean) {
  const sortable = since('1.16') ? ['sort'] : []
  const byIds = since('1.14') ? ['ids'] : []
  refuseUnknown(body, ['offset', 'limit', 'fields', 'filter', 'retrieveVectors', ...sortable, ...byIds])
  const {
    offset = 0,
    limit = 20,
    fields,
    filter,
    ids,
    sort,
  } = body as Body & {
    offset?: number
    limit?: number
    fields?: string[]
    ids?: string[]
    sort?: string[]
  }
  const holds = conditionOf(filter, index, uid, 'invalid_document_filter')
  const wanted = ids === undefined ? undefined : new Set(ids.map(String))
  const all = [...index.documents].filter(([id, document]) => (wanted?.has(id) ?? true) && holds(document))
  checkSort(sort, index, uid, 'invalid_document_sort')
  const asked = { q: '', holds: () => true, sort: sort ?? [], matchingStrategy: 'all' as const }
  const documents = all.map(([, document]) => document)
  const settings = { ...searchSettings(index.settings), rankingRules: ['sort'] }
  const found = sort === undefined ? documents : find(documents, settings, asked).map(({ document }) => document)
  const results = found.slice(offset, offset + limit).map((document) => only(document, fields))
  return { results, offset, limit, total: found.length }
}

interface SearchBody {
  readonly q?: string
  readonly filter?: unknown
  readonly facets?: string[]
  readonly sort?: string[]
  readonly offset?: number
  readonly limit?: number
  readonly page?: number
  readonly hitsPerPage?: number
  readonly matchingStrategy?: 'all' | 'last' | 'frequency'
  readonly attributesToRetrieve?: string[]
  readonly attributesToHighlight?: string[]
  readonly highlightPreTag?: string
  readonly highlightPostTag?: string
  readonly showMatchesPosition?: boolean
  readonly showRankingScore?: boolean
  readonly showRankingScoreDetails?: boolean
}

const SEARCH_PARAMETERS = [
  ...['q', 'filter', 'facets', 'sort', 'offset', 'limit', 'page', 'hitsPerPage', 'matchingStrategy'],
  ...['attributesToRetrieve', 'attributesToHighlight', 'highlightPreTag', 'highlightPostTag'],
  ...['showMatchesPosition', 'showRankingScore', 'showRankingScoreDetails'],
]

/** `page` or `hitsPerPage` make the count exact; `offset` and `limit` only estimate. */
function pageOf({ page, hitsPerPage, offset = 0, limit = 20 }: SearchBody, total: number) {
  if (page === undefined && hitsPerPage === undefined) {
    return {
      from: offset,
      to: offset + limit,
      paging: { limit, offset, estimatedTotalHits: total },
    }
  }
  const size = hitsPerPage ?? 20
  const number = page ?? 1
  const totalPages = size === 0 ? 0 : Math.ceil(total / size)
  const from = number === 0 ? 0 : (number - 1) * size
  const said = { hitsPerPage: size, page: number, totalPages, totalHits: total }
  return { from, to: number === 0 ? 0 : from + size, paging: said }
}

function displayed(asked: readonly string[] | undefined, allowed: readonly string[]): string[] | undefined {
  const wanted = asked === undefined || asked.includes('*') ? undefined : asked
  if (allowed.includes('*')) return wanted === undefined ? undefined : [...wanted]
  return wanted === undefined ? [...allowed] : wanted.filter((name) => allowed.includes(name))
}

/** Vectors are only given to who asks for them, which the double does not know. */
export function only(document: Document, fields?: readonly string[]): Document {
  const all = fields === undefined || fields.includes('*')
  const shown = Object.entries(document).filter(([name]) => name !== '_vectors' && (all || fields.includes(name)))
  return Object.fromEntries(shown)
}

function conditionOf(filter: unknown, { settings }: Index, uid: string, code: string) {
  if (filter === undefined || filter === null) return () => true
  try {
    return parseFilter(filter, filterableIn(settings))
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    throw new Refusal(400, code, `Index \`${uid}\`: ${error.message}`)
  }
}

function checkSort(sort: readonly string[] | undefined, { settings }: Index, uid: string, code: string): void {
  const sortable = new Set(settings.sortableAttributes as string[])
  for (const rule of sort ?? []) {
    const [name = '', direction] = rule.split(':')
    if (direction !== 'asc' && direction !== 'desc') {
      throw new Refusal(
        400,
        code,
        `Invalid syntax for the sort parameter: expected expression ending by \`:asc\` or \`:desc\`, found \`${rule}\`.`,
      )
    }
    if (!sortable.has(name)) {
      throw new Refusal(400, code, `Index \`${uid}\`: Attribute \`${name}\` is not sortable.`)
    }
  }
}

function checkFacets(facets: readonly string[] | undefined, { settings }: Index, uid: string): void {
  const wrong = facets?.find((name) => !filterableIn(settings).has(name))
  if (wrong === undefined) return
  throw new Refusal(
    400,
    'invalid_search_facets',
    `Index \`${uid}\`: Invalid facet distribution: Attribute \`${wrong}\` is not filterable.`,
  )
}
