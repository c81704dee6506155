// Searching in the double of Typesense: words, beginnings, typing errors, phrases, words to exclude,
// facets, sorting, pages and marks, with the limits and the sentences of the real server. Its ranking
// is simpler: fewer errors first, then the heaviest field.

import { type FieldSchema, parseFilter, Refused, type StoredRow } from './double-filters.ts'
import { slips, stemmed, type Token, tokenize } from './double-words.ts'

export interface SearchedCollection {
  readonly name: string
  readonly fields: readonly FieldSchema[]
  readonly separators: readonly string[]
  /** The newest last. */
  readonly rows: ReadonlyMap<string, IndexedRow>
}

export interface IndexedRow extends StoredRow {
  readonly sequence: number
  /** Tokens of the indexed text fields. */
  readonly tokens: Readonly<Record<string, readonly Token[]>>
}

export type Parameters = Readonly<Record<string, unknown>>

interface Asked {
  readonly words: readonly string[]
  readonly phrases: readonly (readonly string[])[]
  readonly excluded: readonly (readonly string[])[]
}

interface Match {
  readonly row: IndexedRow
  readonly score: number
  readonly weight: number
  /** Words found, by field, as they are indexed. */
  readonly found: ReadonlyMap<string, ReadonlySet<string>>
}

interface Searched {
  readonly field: FieldSchema
  readonly weight: number
  readonly typos: number
}

const text = (value: unknown, fallback = '') => (value === undefined ? fallback : String(value))
const listed = (value: unknown) =>
  text(value)
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean)

export function searchDouble(collection: SearchedCollection, given: Parameters): object {
  const perPage = Number(given.limit ?? given.per_page ?? 10)
  if (perPage > 250) throw new Refused(422, 'Only upto 250 hits can be fetched per page.')
  const filter = parseFilter(text(given.filter_by), collection.fields, collection.separators)
  const rows = [...collection.rows.values()].filter(filter)
  const fields = searchedFields(collection, given)
  const matches = sort(collection, match(collection, rows, fields, given), text(given.sort_by))
  const page = Math.max(1, Number(given.page ?? 1))
  const offset = given.offset === undefined ? (page - 1) * perPage : Number(given.offset)
  return {
    facet_counts: listed(given.facet_by).map((name) => facet(collection, name, matches, given)),
    found: matches.length,
    out_of: collection.rows.size,
    page,
    search_time_ms: 1,
    search_cutoff: false,
    request_params: { collection_name: collection.name, per_page: perPage, q: text(given.q) },
    hits: matches.slice(offset, offset + perPage).map((one) => hit(one, given)),
  }
}

function searchedFields({ fields }: SearchedCollection, given: Parameters): Searched[] {
  if (text(given.q) === '*') return []
  const names = listed(given.query_by)
  if (names.length === 0) throw new Refused(400, 'Parameter `query_by` is required.')
  const weights = listed(given.query_by_weights)
  const typos = listed(text(given.num_typos, '2'))
  return names.map((name, at) => {
    const field = fields.find((one) => one.name === name)
    if (field === undefined) {
      throw new Refused(404, `Could not find a field named \`${name}\` in the schema.`)
    }
    const weight = Number(weights[at] ?? names.length - at)
    return { field, weight, typos: Number(typos[at] ?? typos[0]) }
  })
}

/** Quotes make a phrase, a minus takes away, anything else must occur. */
function parse(q: string, separators: readonly string[]): Asked {
  const words: string[] = []
  const phrases: string[][] = []
  const excluded: string[][] = []
  for (const [, minus, phrase, word] of q.matchAll(/(-?)(?:"([^"]*)"?|([^\s"]+))/g)) {
    const list = tokenize(phrase ?? word ?? '', separators, false).map((token) => token.word)
    if (list.length === 0) continue
    if (minus === '-') excluded.push(...(phrase === undefined ? list.map((one) => [one]) : [list]))
    else if (phrase === undefined) words.push(...list)
    else phrases.push(list)
  }
  return { words, phrases, excluded }
}

function match(
  { separators }: SearchedCollection,
  rows: readonly IndexedRow[],
  fields: readonly Searched[],
  given: Parameters,
): Match[] {
  const all = rows.map((row) => ({ row, score: 0, weight: 0, found: new Map() }))
  if (text(given.q) === '*') return all
  const asked = parse(text(given.q), separators)
  const kept = rows.filter(
    (row) =>
      asked.phrases.every((words) => fields.some(({ field }) => hasPhrase(row, field, words))) &&
      !asked.excluded.some((words) => fields.some(({ field }) => hasPhrase(row, field, words))),
  )
  if (asked.words.length === 0) {
    return kept.map((row) => ({ row, score: 100, weight: 0, found: phraseWords(asked, fields) }))
  }
  const most = Math.max(...fields.map(({ typos }) => typos))
  const threshold = Number(given.typo_tokens_threshold ?? 1)
  let matches: Match[] = []
  for (let slipsMax = 0; slipsMax <= most; slipsMax++) {
    matches = kept.flatMap((row) => matchRow(row, asked, fields, { slipsMax, given }))
    if (matches.length >= Math.max(1, threshold)) break
  }
  return matches
}

function phraseWords({ phrases }: Asked, fields: readonly Searched[]) {
  return new Map(fields.map(({ field }) => [field.name, new Set(phrases.flat().map(inField(field)))]))
}

const inField = (field: FieldSchema) => (word: string) => (field.stem ? stemmed(word) : word)

/** Since server 29 the words of a phrase are not stemmed, so a stemmed field rarely has one. */
function hasPhrase(row: IndexedRow, field: FieldSchema, words: readonly string[]): boolean {
  const tokens = (row.tokens[field.name] ?? []).map(({ word }) => word)
  const wanted = words.length === 1 ? words.map(inField(field)) : words
  return tokens.some((_, at) => wanted.every((word, next) => tokens[at + next] === word))
}

/** Every word in some field, the last perhaps only begun. */
function matchRow(
  row: IndexedRow,
  { words }: Asked,
  fields: readonly Searched[],
  { slipsMax, given }: { slipsMax: number; given: Parameters },
): Match[] {
  const found = new Map<string, Set<string>>()
  let errors = 0
  let weight = 0
  for (const [at, word] of words.entries()) {
    const prefix = at === words.length - 1 && text(given.prefix, 'true') !== 'false'
    let least = Number.POSITIVE_INFINITY
    for (const { field, weight: ofField, typos } of fields) {
      const typed = inField(field)(word)
      const max = Math.min(slipsMax, typos, allowed(typed, given))
      for (const token of row.tokens[field.name] ?? []) {
        const count = fits(typed, token.word, prefix) ? 0 : slips(typed, token.word, prefix, max)
        if (count > max) continue
        const set = found.get(field.name) ?? new Set()
        found.set(field.name, set.add(token.word))
        if (count < least) least = count
        weight = Math.max(weight, ofField)
      }
    }
    if (least === Number.POSITIVE_INFINITY) return []
    errors += least
  }
  return [{ row, score: 100 - errors, weight, found }]
}

const fits = (typed: string, word: string, prefix: boolean) => (prefix ? word.startsWith(typed) : word === typed)

function allowed(typed: string, given: Parameters): number {
  if (/^\d+$/.test(typed) && text(given.enable_typos_for_numerical_tokens, 'true') === 'false') {
    return 0
  }
  if (typed.length >= Number(given.min_len_2typo ?? 7)) return 2
  return typed.length >= Number(given.min_len_1typo ?? 4) ? 1 : 0
}

const SORT = /^([A-Za-z0-9_]+)(?:\(\s*missing_values:\s*(first|last|normal)\s*\))?:(asc|desc)$/

function sort({ fields }: SearchedCollection, matches: Match[], by: string): Match[] {
  const keys = by === '' ? ['_text_match:desc'] : by.split(',').map((one) => one.trim())
  if (keys.length > 3) throw new Refused(422, 'Only upto 3 sort_by fields can be specified.')
  const comparing = keys.map((key) => {
    const [, name = '', missing = 'last', direction] = SORT.exec(key) ?? []
    const field = fields.find((one) => one.name === name)
    const sortable = field?.type.startsWith('int') || field?.sort === true
    if (name === '' || (name !== '_text_match' && !sortable)) {
      const says = `Could not find a field named \`${name || key}\` in the schema for sorting.`
      throw new Refused(404, says)
    }
    const value = ({ row, score, weight }: Match) =>
      name === '_text_match' ? score * 1_000 + weight : (row.integers[name] ?? row.document[name])
    return comparison(value, direction === 'asc', missing)
  })
  return matches.sort((a, b) => {
    for (const compare of comparing) {
      const order = compare(a, b)
      if (order !== 0) return order
    }
    return b.row.sequence - a.row.sequence
  })
}

function comparison(value: (one: Match) => unknown, ascending: boolean, missing: string) {
  return (a: Match, b: Match) => {
    const [one, other] = [value(a), value(b)]
    if (one === undefined || other === undefined) {
      if (one === other) return 0
      return (one === undefined) === (missing === 'last') ? 1 : -1
    }
    const order = smaller(one, other) ? -1 : smaller(other, one) ? 1 : 0
    return ascending ? order : -order
  }
}

const lower = (value: unknown) => (typeof value === 'string' ? value.toLowerCase().replace(/[-_~]/g, '') : value)
const smaller = (a: unknown, b: unknown) => (lower(a) as string) < (lower(b) as string)

/** 255 bytes, even if a character is split. */
const counted = (value: string) => Buffer.from(value).subarray(0, 255).toString()

function facet({ fields }: SearchedCollection, name: string, matches: readonly Match[], given: Parameters): object {
  const field = fields.find((one) => one.name === name)
  if (field?.facet !== true) {
    throw new Refused(404, `Could not find a facet field named \`${name}\` in the schema.`)
  }
  const counts = new Map<string, number>()
  for (const { row } of matches) {
    const value = row.document[name]
    const values = Array.isArray(value) ? value : value === undefined ? [] : [value]
    for (const one of new Set(values.map((each) => counted(String(each))))) {
      counts.set(one, (counts.get(one) ?? 0) + 1)
    }
  }
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  return {
    field_name: name,
    sampled: false,
    stats: { total_values: counts.size },
    counts: sorted
      .slice(0, Number(given.max_facet_values ?? 10))
      .map(([value, count]) => ({ count, highlighted: value, value })),
  }
}

function hit({ row, score, weight, found }: Match, given: Parameters): object {
  const included = listed(given.include_fields)
  const left = listed(given.exclude_fields)
  const entries = Object.entries({ ...row.document, id: row.id }).filter(
    ([name]) => !left.includes(name) && (included.length === 0 || included.includes(name)),
  )
  const total = (1n << 58n) + BigInt(score) * 1_000n + BigInt(weight)
  return {
    document: Object.fromEntries(entries),
    highlight: {},
    highlights: highlights(row, found, given),
    ...(text(given.q) !== '*' && {
      text_match: Number(total),
      text_match_info: {
        best_field_score: String(score),
        best_field_weight: weight,
        fields_matched: found.size,
        score: String(total),
        tokens_matched: 1,
      },
    }),
  }
}

function highlights(row: IndexedRow, found: Match['found'], given: Parameters): object[] {
  const only = listed(given.highlight_fields)
  return [...found].flatMap(([field, words]): object[] => {
    if (only.length > 0 && !only.includes(field)) return []
    const tokens = (row.tokens[field] ?? []).filter(({ word }) => words.has(word))
    if (tokens.length === 0) return []
    const matched = [...new Set(tokens.map(({ raw }) => raw))]
    const value = row.document[field]
    if (Array.isArray(value)) return [{ field, indices: [0], matched_tokens: [matched] }]
    const snippet = matched.reduce((all, raw) => all.replace(raw, `<mark>${raw}</mark>`), `${value}`)
    return [{ field, snippet, matched_tokens: matched }]
  })
}
