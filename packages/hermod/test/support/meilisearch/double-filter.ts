/**
 * The filter language of the double of Meilisearch: `=`, `!=`, `>`, `>=`, `<`, `<=`, `TO`, `IN`,
 * `EXISTS`, `IS NULL`, `IS EMPTY`, `NOT`, `AND`, `OR`, brackets, and the form in lists. Texts are
 * compared without case, as the server does; texts longer than 468 bytes by what comes before.
 */
export type Document = Readonly<Record<string, unknown>>
export type Condition = (document: Document) => boolean

export class FilterError extends Error {}

const valueBytesMax = 468

export function filterValue(text: string): string {
  return text.trim().normalize('NFKD').toLowerCase()
}

/** What a document keeps of a value. */
function storedValue(text: string): string {
  const bytes = Buffer.from(filterValue(text))
  return bytes.length <= valueBytesMax ? bytes.toString() : bytes.subarray(0, valueBytesMax).toString()
}

export function parseFilter(filter: unknown, filterable: ReadonlySet<string>): Condition {
  if (Array.isArray(filter)) {
    const parts = filter.map((one) => {
      if (!Array.isArray(one)) return parseFilter(one, filterable)
      const either = one.map((alternative) => parseFilter(alternative, filterable))
      return (document: Document) => either.some((holds) => holds(document))
    })
    return (document) => parts.every((holds) => holds(document))
  }
  if (typeof filter !== 'string') {
    throw new FilterError(
      `Invalid syntax for the filter parameter: \`expected String, Array, found: ${JSON.stringify(filter)}\`.`,
    )
  }
  return new Parser(filter, filterable).parse()
}

type Piece = { readonly text: string; readonly quoted: boolean }

const PIECE = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(>=|<=|!=|[=<>()[\],])|([^\s=<>!()[\],"']+)/gsy

class Parser {
  readonly #pieces: readonly Piece[]
  readonly #filterable: ReadonlySet<string>
  #at = 0

  constructor(filter: string, filterable: ReadonlySet<string>) {
    this.#pieces = piecesOf(filter)
    this.#filterable = filterable
  }

  parse(): Condition {
    if (this.#pieces.length === 0) return () => true
    const condition = this.#either()
    if (this.#at < this.#pieces.length) this.#fail('expected the end of the filter')
    return condition
  }

  #either(): Condition {
    const parts = [this.#both()]
    while (this.#takeWord('OR')) parts.push(this.#both())
    return (document) => parts.some((holds) => holds(document))
  }

  #both(): Condition {
    const parts = [this.#single()]
    while (this.#takeWord('AND')) parts.push(this.#single())
    return (document) => parts.every((holds) => holds(document))
  }

  #single(): Condition {
    if (this.#takeWord('NOT')) {
      const inner = this.#single()
      return (document) => !inner(document)
    }
    if (this.#takeSign('(')) {
      const inner = this.#either()
      if (!this.#takeSign(')')) this.#fail('expected `)`')
      return inner
    }
    return this.#comparison()
  }

  #comparison(): Condition {
    const { text: name } = this.#next()
    if (!this.#filterable.has(name)) {
      const known = [...this.#filterable].sort().join(', ')
      throw new FilterError(
        `Attribute \`${name}\` is not filterable. Available filterable attributes patterns are: \`${known}\`.`,
      )
    }
    const negated = this.#takeWord('NOT')
    const holds = this.#operator(name)
    return negated ? (document) => !holds(document) : holds
  }

  #operator(name: string): Condition {
    if (this.#takeWord('EXISTS')) return (document) => name in document
    if (this.#takeWord('IS')) return this.#is(name)
    if (this.#takeWord('IN')) return this.#in(name)
    for (const sign of ['>=', '<=', '>', '<'] as const) {
      if (this.#takeSign(sign)) return this.#ordered(name, sign)
    }
    if (this.#takeSign('!=')) {
      const equal = this.#equal(name)
      return (document) => !equal(document)
    }
    if (this.#takeSign('=')) return this.#equal(name)
    const from = this.#number()
    if (!this.#takeWord('TO')) this.#fail('expected an operation')
    const to = this.#number()
    return (document) => numbersIn(document[name]).some((value) => value >= from && value <= to)
  }

  #is(name: string): Condition {
    const negated = this.#takeWord('NOT')
    const empty = this.#takeWord('EMPTY')
    if (!empty && !this.#takeWord('NULL')) this.#fail('expected NULL or EMPTY')
    const holds: Condition = empty
      ? (document) => ['', '[]', '{}'].includes(JSON.stringify(document[name] ?? 0).replace(/^""$/, ''))
      : (document) => document[name] === null
    return negated ? (document) => !holds(document) : holds
  }

  #in(name: string): Condition {
    if (!this.#takeSign('[')) this.#fail('expected `[`')
    const values: string[] = []
    while (!this.#takeSign(']')) {
      values.push(this.#next().text)
      if (!this.#takeSign(',') && this.#pieces[this.#at]?.text !== ']') this.#fail('expected `]`')
    }
    const texts = new Set(values.map(filterValue))
    const numbers = new Set(values.filter(isNumeral).map(Number))
    return ({ [name]: value }) => {
      if (typeof value === 'number') return numbers.has(value)
      return textsIn(value).some((one) => texts.has(one)) || numbersIn(value).some((one) => numbers.has(one))
    }
  }

  #equal(name: string): Condition {
    const { text } = this.#next()
    const wanted = filterValue(text)
    const number = isNumeral(text) ? Number(text) : Number.NaN
    return (document) => textsIn(document[name]).includes(wanted) || numbersIn(document[name]).includes(number)
  }

  #ordered(name: string, sign: '>=' | '<=' | '>' | '<'): Condition {
    const bound = this.#number()
    const holds = {
      '>=': (value: number) => value >= bound,
      '<=': (value: number) => value <= bound,
      '>': (value: number) => value > bound,
      '<': (value: number) => value < bound,
    }[sign]
    return (document) => numbersIn(document[name]).some(holds)
  }

  #number(): number {
    const { text } = this.#next()
    if (!isNumeral(text)) this.#fail(`expected a number, found \`${text}\``)
    return Number(text)
  }

  #takeWord(word: string): boolean {
    const piece = this.#pieces[this.#at]
    if (piece === undefined || piece.quoted || piece.text !== word) return false
    this.#at++
    return true
  }

  #takeSign(sign: string): boolean {
    return this.#takeWord(sign)
  }

  #next(): Piece {
    const piece = this.#pieces[this.#at++]
    return piece ?? this.#fail('the filter ended too early')
  }

  #fail(says: string): never {
    throw new FilterError(`Was expecting something else: ${says}.`)
  }
}

function piecesOf(filter: string): Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; at < filter.length; ) {
    const space = /\s*/y
    space.lastIndex = at
    at += space.exec(filter)?.[0].length ?? 0
    if (at >= filter.length) break
    PIECE.lastIndex = at
    const match = PIECE.exec(filter)
    if (match === null) throw new FilterError(`Was expecting an operation at ${at}.`)
    const [whole, double, single, sign, plain] = match
    // Only the quote itself is unescaped; a backslash before anything else stays.
    if (double !== undefined) pieces.push({ text: double.replaceAll('\\"', '"'), quoted: true })
    else if (single !== undefined) pieces.push({ text: single.replaceAll("\\'", "'"), quoted: true })
    else pieces.push({ text: (sign ?? plain) as string, quoted: false })
    at += whole.length
  }
  return pieces
}

const isNumeral = (text: string) => /^[+-]?\d+(\.\d+)?$/.test(text)

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(listOf)
  return value === undefined || value === null ? [] : [value]
}

const cache = new WeakMap<object, string[]>()

function textsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return listOf(value).map(textOf)
  const kept = cache.get(value) ?? listOf(value).map(textOf)
  cache.set(value, kept)
  return kept
}

const textOf = (value: unknown) => storedValue(String(value))

export function numbersIn(value: unknown): number[] {
  return listOf(value).filter((one): one is number => typeof one === 'number')
}
