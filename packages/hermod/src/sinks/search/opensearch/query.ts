/**
 * A request as a query of OpenSearch. Words are values of a JSON document, never part of a query
 * language, so whatever was typed cannot become an operator.
 */
import type { ResolvedDefinition } from '../check-definition.ts'
import type { Condition, ResolvedRequest } from '../check-request.ts'
import { endsShort, type Term } from '../query.ts'
import type { ApiCall, Json, OpenSearchApi } from './api.ts'
import type { OpenSearchGeneration } from './generations.ts'
import { headingWeight, identifiersField, plainField, reserved, weightsOf, wordsField } from './schema.ts'

/** Of weight 1 to 4. */
const BOOSTS: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 4, 4: 8 }
const boostOf = (weight: number) => BOOSTS[weight] ?? 1
const identifierBoost = 10
const exactBoost = 1_000
const facetValuesMax = 100
const FUZZY = /^\p{L}{4,24}$/u

/** One slip from four letters on, two from eight: fewer letters have too many neighbours. */
export const slipsMax = (word: string) => (FUZZY.test(word) ? (word.length >= 8 ? 2 : 1) : 0)

export interface Asked {
  readonly terms: readonly Term[]
  /** Words that are spelt alike count too, behind those that were typed. */
  readonly similar: boolean
}

/** One search in progress. */
export interface Search {
  readonly api: OpenSearchApi
  readonly generation: OpenSearchGeneration
  readonly request: ResolvedRequest
  readonly call: ApiCall
}

export function canBeSimilar(terms: readonly Term[]): boolean {
  return terms.some(({ words, excluded }) => words.length === 1 && !excluded && slipsMax(words[0] as string) > 0)
}

export function searchBody(definition: ResolvedDefinition, request: ResolvedRequest, asked: Asked): Json {
  const { conditions, facets, offset, limit, countMax } = request
  const own = conditions.filter(({ field }) => facets.includes(field.name))
  const others = conditions.filter((condition) => !own.includes(condition))
  return {
    from: offset,
    size: limit,
    track_total_hits: countMax + 1,
    query: { bool: { ...matching(definition, asked), filter: others.map(conditionQuery) } },
    ...(own.length > 0 && { post_filter: all(own) }),
    ...(facets.length > 0 && { aggs: facetsOf(facets, own) }),
    sort: sortOf(request, asked),
    track_scores: false,
    _source: { excludes: hiddenOf(definition, request) },
  }
}

/** Hidden texts are needed only to mark words in them. */
function hiddenOf({ fields }: ResolvedDefinition, { highlights }: ResolvedRequest): string[] {
  return fields.filter((f) => !f.displayed && !highlights.includes(f.name)).map(({ name }) => name)
}

function matching(definition: ResolvedDefinition, { terms, similar }: Asked): Json {
  if (terms.length === 0) return {}
  const typed = wordsQuery(definition, terms, false)
  if (!similar) return typed
  const exactly = { constant_score: { filter: { bool: typed }, boost: exactBoost } }
  return { ...wordsQuery(definition, terms, true), should: [exactly] }
}

function wordsQuery(definition: ResolvedDefinition, terms: readonly Term[], similar: boolean) {
  const words = new Words(definition, { similar, short: endsShort(terms) })
  const groups: Json[][] = []
  const excluded: Json[] = []
  for (const term of terms) {
    const query = words.query(term)
    if (term.excluded) excluded.push(query)
    else if (term.alternative && groups.length > 0) groups.at(-1)?.push(query)
    else groups.push([query])
  }
  return { must: groups.map(either), must_not: excluded }
}

const either = (queries: readonly Json[]): Json => ({
  dis_max: { queries, tie_breaker: 0.1 },
})

class Words {
  readonly #weights: readonly number[]
  readonly #identifiers: boolean
  readonly #similar: boolean
  readonly #short: boolean

  constructor({ fields }: ResolvedDefinition, how: { similar: boolean; short: boolean }) {
    this.#weights = weightsOf(fields)
    this.#identifiers = fields.some(({ kind }) => kind === 'identifier')
    this.#similar = how.similar
    this.#short = how.short
  }

  query(term: Term): Json {
    const { words, whole, excluded, unfinished } = term
    const [word = '', more] = words
    const text = words.join(' ')
    return either([
      ...this.#match(text, more === undefined ? 'best_fields' : 'phrase', excluded),
      ...this.#identifier('term', whole ?? word),
      ...(whole === undefined ? [] : this.#match(whole, 'best_fields', excluded)),
      ...(unfinished ? this.#prefix(term) : []),
      ...(this.#similar && more === undefined && !excluded ? this.#like(word) : []),
    ])
  }

  /** Nothing but stop words finds everything, and excludes nothing. */
  #match(query: string, type: 'best_fields' | 'phrase', excluded: boolean): Json[] {
    if (this.#weights.length === 0) return []
    const empty = excluded ? 'none' : 'all'
    const stems = this.#weights.map((weight) => `${wordsField(weight)}^${boostOf(weight)}`)
    const plain = this.#weights.map((weight) => `${plainField(weight)}^${boostOf(weight) * 1.2}`)
    return [
      { multi_match: { query, type, fields: stems, zero_terms_query: empty } },
      ...(excluded ? [] : [{ multi_match: { query, type, fields: plain } }]),
    ]
  }

  /** One or two letters begin thousands of words: only titles and identifiers are looked through. */
  #prefix({ words, whole }: Term): Json[] {
    const weights = this.#short ? this.#weights.filter((weight) => weight === headingWeight) : this.#weights
    const fields = weights.map((weight) => `${plainField(weight)}^${boostOf(weight)}`)
    const query = words.join(' ')
    const begun =
      words.length > 1
        ? [{ multi_match: { query, type: 'phrase_prefix', fields, max_expansions: 100 } }]
        : weights.map((weight) => ({
            prefix: { [plainField(weight)]: { value: query, boost: boostOf(weight) / 2 } },
          }))
    return [...(fields.length === 0 ? [] : begun), ...this.#identifier('prefix', whole ?? (words[0] as string))]
  }

  #like(word: string): Json[] {
    const fuzziness = slipsMax(word)
    if (fuzziness === 0) return []
    return this.#weights.map((weight) => ({
      fuzzy: {
        [plainField(weight)]: {
          value: word,
          fuzziness,
          prefix_length: 1,
          transpositions: true,
          boost: boostOf(weight) / 2,
        },
      },
    }))
  }

  #identifier(how: 'term' | 'prefix', value: string): Json[] {
    if (!this.#identifiers) return []
    const boost = how === 'term' ? identifierBoost : identifierBoost / 2
    return [{ [how]: { [identifiersField]: { value, boost } } }]
  }
}

/** An empty list of values matches nothing; documents without the field are none of anything. */
function conditionQuery(condition: Condition): Json {
  const { field } = condition
  if ('anyOf' in condition) return { terms: { [field.name]: condition.anyOf } }
  if ('noneOf' in condition) return none([{ terms: { [field.name]: condition.noneOf } }])
  const { is, bound } = condition
  const operator = { from: 'gte', to: 'lte', above: 'gt', below: 'lt' }[is]
  if (field.kind !== 'date') return { range: { [field.name]: { [operator]: bound } } }
  const whole = is === 'from' || is === 'below' ? Math.ceil(bound) : Math.floor(bound)
  return { range: { [field.name]: { [operator]: whole, format: 'epoch_millis' } } }
}

const none = (queries: readonly Json[]): Json => ({ bool: { must_not: queries } })
const all = (conditions: readonly Condition[]): Json => ({
  bool: { filter: conditions.map(conditionQuery) },
})

/** The filter of a facet's own field is left to the others. */
function facetsOf(facets: readonly string[], own: readonly Condition[]): Json {
  const terms = (field: string) => ({
    field,
    size: facetValuesMax,
    order: [{ _count: 'desc' }, { _key: 'asc' }],
  })
  return Object.fromEntries(
    facets.map((name) => {
      const filter = all(own.filter(({ field }) => field.name !== name))
      return [name, { filter, aggs: { values: { terms: terms(name) } } }]
    }),
  )
}

/** By declared fields; else by relevance, or the newest first when nothing was typed. */
function sortOf({ sort }: ResolvedRequest, { terms }: Asked): Json[] {
  const byId = { [reserved.id]: 'asc' }
  if (sort.length === 0) {
    return [terms.length > 0 ? { _score: 'desc' } : { [reserved.version]: 'desc' }, byId]
  }
  const fields = sort.map(({ field, ascending }) => ({
    [field]: { order: ascending ? 'asc' : 'desc', missing: '_last' },
  }))
  return [...fields, byId]
}
