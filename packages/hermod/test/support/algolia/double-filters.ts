/**
 * Filters of the double of Algolia: `facetFilters`, `numericFilters` and the language of `filters`.
 * As documented, names are compared by case and values are not; an attribute that was not declared
 * for faceting matches nothing.
 */

export interface FilterParams {
  readonly facetFilters?: FilterList
  readonly numericFilters?: FilterList
  readonly filters?: string
}

type FilterList = string | readonly (string | readonly string[])[]
type Test = (record: object) => boolean

/** The scalar values under `a.b`, through lists. */
export function valuesAt(record: unknown, path: string): unknown[] {
  let level: unknown[] = [record]
  for (const key of path.split('.')) {
    level = level
      .flat(Number.POSITIVE_INFINITY)
      .flatMap((one) => (typeof one === 'object' && one !== null ? [(one as Record<string, unknown>)[key]] : []))
  }
  return level.flat(Number.POSITIVE_INFINITY).filter((one) => one !== undefined && one !== null)
}

export class BadFilter extends Error {}

/** Throws BadFilter for what cannot be read. */
export function filterOf(params: FilterParams, attributesForFaceting: readonly string[]): Test {
  const declared = new Set(attributesForFaceting.map(bareName))
  const tests = [
    ...allOf(params.facetFilters, (text) => facetTest(text, declared)),
    ...allOf(params.numericFilters, numericTest),
  ]
  if (params.filters !== undefined && params.filters.trim() !== '') {
    tests.push(new Language(params.filters, declared).read())
  }
  return (record) => tests.every((test) => test(record))
}

export function bareName(attribute: string): string {
  return attribute.replace(/^(?:\w+\()+|\)+$/g, '')
}

/** The outer list is AND, an inner one OR. */
function allOf(list: FilterList | undefined, testOf: (text: string) => Test): Test[] {
  const outer = list === undefined ? [] : typeof list === 'string' ? [list] : list
  return outer.map((entry) => {
    const tests = (typeof entry === 'string' ? [entry] : entry).map(testOf)
    return (record) => tests.some((test) => test(record))
  })
}

function facetTest(text: string, declared: ReadonlySet<string>): Test {
  const colon = text.indexOf(':')
  if (colon === -1) throw new BadFilter(`invalid facet filter ${text}`)
  const name = text.slice(0, colon)
  const value = text.slice(colon + 1)
  const negated = value.startsWith('-')
  const wanted = value.replace(/^\\?-/, (minus) => (minus === '-' ? '' : '-')).toLowerCase()
  if (!declared.has(name) && name !== 'objectID') return () => false
  const has: Test = (record) => valuesAt(record, name).some((one) => String(one).toLowerCase() === wanted)
  return negated ? (record) => !has(record) : has
}

const NUMERIC = /^([\w.]+)\s*(<=|>=|!=|=|<|>)\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/i
const BETWEEN = /^([\w.]+):\s*(-?\d+(?:\.\d+)?)\s+TO\s+(-?\d+(?:\.\d+)?)$/i

function numericTest(text: string): Test {
  const between = BETWEEN.exec(text.trim())
  if (between !== null) {
    const [low, high] = [Number(between[2]), Number(between[3])]
    return (record) => numbers(record, between[1]).some((one) => one >= low && one <= high)
  }
  const match = NUMERIC.exec(text.trim())
  if (match === null) throw new BadFilter(`invalid numeric filter ${text}`)
  const bound = Number(match[3])
  return (record) => numbers(record, match[1]).some((one) => compare(one, match[2], bound))
}

const numbers = (record: object, path = '') => valuesAt(record, path).filter((one) => typeof one === 'number')

function compare(one: number, operator: string | undefined, bound: number): boolean {
  switch (operator) {
    case '<':
      return one < bound
    case '<=':
      return one <= bound
    case '>':
      return one > bound
    case '>=':
      return one >= bound
    case '!=':
      return one !== bound
    default:
      return one === bound
  }
}

const TOKEN =
  /\s*(\(|\)|AND\b|OR\b|NOT\b|[\w.]+:"[^"]*"|[\w.]+:\s*-?[\d.]+\s+TO\s+-?[\d.]+|[\w.]+\s*(?:<=|>=|!=|=|<|>)\s*-?[\d.]+|[\w.]+:[^\s()]+)/y

/** `a:x AND (b:"y z" OR NOT n > 3)`. */
class Language {
  readonly #tokens: string[] = []
  readonly #declared: ReadonlySet<string>

  constructor(text: string, declared: ReadonlySet<string>) {
    this.#declared = declared
    TOKEN.lastIndex = 0
    while (TOKEN.lastIndex < text.trimEnd().length) {
      const match = TOKEN.exec(text)
      if (match === null) throw new BadFilter(`filters: Unexpected token in ${text.slice(0, 40)}`)
      this.#tokens.push(match[1] as string)
    }
  }

  read(): Test {
    const test = this.#any()
    if (this.#tokens.length > 0) throw new BadFilter('filters: Unexpected end')
    return test
  }

  #any(): Test {
    const tests = [this.#all()]
    while (this.#tokens[0] === 'OR') {
      this.#tokens.shift()
      tests.push(this.#all())
    }
    return (record) => tests.some((test) => test(record))
  }

  #all(): Test {
    const tests = [this.#one()]
    while (this.#tokens[0] === 'AND') {
      this.#tokens.shift()
      tests.push(this.#one())
    }
    return (record) => tests.every((test) => test(record))
  }

  #one(): Test {
    const token = this.#tokens.shift()
    if (token === undefined) throw new BadFilter('filters: Unexpected end')
    if (token === 'NOT') {
      const test = this.#one()
      return (record) => !test(record)
    }
    if (token === '(') {
      const test = this.#any()
      if (this.#tokens.shift() !== ')') throw new BadFilter('filters: Missing )')
      return test
    }
    if (NUMERIC.test(token) || BETWEEN.test(token)) return numericTest(token)
    return facetTest(token.replace(/^([\w.]+):"(.*)"$/, '$1:$2'), this.#declared)
  }
}
