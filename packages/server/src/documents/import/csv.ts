/**
 * CSV as RFC 4180 has it, piece by piece: quotes, commas and line breaks inside quotes, CRLF or LF.
 * Nothing is trimmed or guessed; what cannot be read is said with the line where it began.
 */
import { Problem } from '../../problems.ts'

export interface CsvRecord {
  /** Line of the file where the record begins; the first is 1. */
  readonly line: number
  readonly fields: readonly string[]
  /** What is wrong with its quotes; the end of the record is a guess. */
  readonly broken?: string
}

const COMMA = 44
const QUOTE = 34
const LF = 10
const CR = 13
const SPECIAL = /[",\r\n]/g

/** Where the reader is: before a field, in a bare one, in a quoted one, behind its closing quote. */
type At = 'start' | 'bare' | 'quoted' | 'closed'

export class CsvReader {
  readonly #charsMax: number
  #at: At = 'start'
  #field = ''
  #fields: string[] = []
  #broken: string | undefined
  #line = 1
  #began = 1
  #chars = 0
  #afterCr = false

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  /** The records that ended within this piece of text. */
  push(text: string): CsvRecord[] {
    const records: CsvRecord[] = []
    let from = 0
    SPECIAL.lastIndex = 0
    for (let found = SPECIAL.exec(text); found !== null; found = SPECIAL.exec(text)) {
      this.#take(text.slice(from, found.index))
      from = found.index + 1
      this.#meet(text.charCodeAt(found.index), records)
    }
    this.#take(text.slice(from))
    return records
  }

  /** The last record, when the file does not end with a line break. */
  end(): CsvRecord[] {
    const records: CsvRecord[] = []
    if (this.#at === 'quoted') this.#broken ??= 'has a quote that is never closed'
    if (this.#at !== 'start' || this.#fields.length > 0) this.#endRecord(records)
    return records
  }

  #meet(code: number, records: CsvRecord[]): void {
    if (code === LF) this.#line++
    if (this.#at === 'quoted') {
      if (code === QUOTE) this.#at = 'closed'
      else this.#field += String.fromCharCode(code)
    } else if (code === QUOTE) {
      this.#meetQuote()
    } else if (code === COMMA) {
      this.#endField()
    } else if (code === LF) {
      this.#endLine(records)
    } else {
      this.#meetCr()
    }
    this.#afterCr = code === CR && this.#at !== 'quoted'
  }

  #meetQuote(): void {
    if (this.#at === 'start') {
      this.#at = 'quoted'
      return
    }
    if (this.#at === 'closed' && this.#afterCr) this.#misplaced()
    // Doubled inside quotes it is one; inside a bare field it is itself.
    this.#field += '"'
    if (this.#at === 'closed') this.#at = 'quoted'
  }

  /** Part of the line's end when LF follows, else text. */
  #meetCr(): void {
    this.#field += '\r'
    if (this.#at === 'start') this.#at = 'bare'
  }

  #endLine(records: CsvRecord[]): void {
    if (this.#afterCr) {
      this.#field = this.#field.slice(0, -1)
      if (this.#field === '' && this.#at === 'bare') this.#at = 'start'
    }
    const empty = this.#at === 'start' && this.#fields.length === 0
    if (empty) this.#began = this.#line
    else this.#endRecord(records)
  }

  #endRecord(records: CsvRecord[]): void {
    this.#endField()
    const broken = this.#broken === undefined ? {} : { broken: this.#broken }
    records.push({ line: this.#began, fields: this.#fields, ...broken })
    this.#fields = []
    this.#broken = undefined
    this.#began = this.#line
    this.#chars = 0
  }

  #endField(): void {
    this.#fields.push(this.#field)
    this.#field = ''
    this.#at = 'start'
    this.#chars++
  }

  #take(text: string): void {
    if (text === '') return
    if (this.#at === 'start') this.#at = 'bare'
    else if (this.#at === 'closed') this.#misplaced()
    this.#afterCr = false
    this.#field += text
    this.#chars += text.length
    if (this.#chars <= this.#charsMax) return
    throw new Problem(
      'HMD_BODY_TOO_LARGE',
      `The row that begins on line ${this.#began} is longer than ${this.#charsMax} characters; is a closing quote missing?`,
    )
  }

  #misplaced(): void {
    this.#broken ??= 'has text after a closing quote; inside quotes a quote is written twice'
    this.#at = 'bare'
  }
}
