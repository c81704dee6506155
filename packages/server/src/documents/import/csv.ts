/**
 * CSV as RFC 4180 has it, piece by piece, by csv-parse; here are the bounds it does not have. Nothing is trimmed: a quote inside a bare
 * field is itself. A quote that is never closed refuses the file, because nobody knows where its rows begin.
 */
import { CsvError, type Parser, parse } from 'csv-parse'
import { Problem } from '../../problems.ts'

export interface CsvRecord {
  /** Line of the file where the record begins; the first is 1. */
  readonly line: number
  readonly fields: readonly string[]
}

/** No more names than anybody needs: 50 own fields, ours, and room. */
export const csvColumnsMax = 1_000
const headerBytesMax = 262_144
/** Of one file: a million rows of fifty columns. */
const cellsMax = 50_000_000
/** Read at once: a piece of commas only takes a few milliseconds. */
const pieceBytes = 8_192

export class CsvReader {
  readonly #recordBytesMax: number
  readonly #parser: Parser
  #records: CsvRecord[] = []
  #headerSeen = false
  #cells = 0
  /** Since the last record; csv-parse counts no commas. */
  #bytes = 0
  /** Of the record that is being read. */
  #line = 1
  /** CRs inside fields: csv-parse counts each as a line. */
  #returns = 0

  constructor(recordBytesMax: number) {
    this.#recordBytesMax = recordBytesMax
    this.#parser = parse({
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      // Records are taken here, so that the stream never fills up.
      on_record: (fields: string[], { lines }) => {
        this.#take(fields, lines)
        return null
      },
    })
    // Said by the write that met it.
    this.#parser.on('error', () => {}).resume()
  }

  /** The records that ended within this piece of text, little by little. */
  async *push(text: string): AsyncGenerator<readonly CsvRecord[]> {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes)
      this.#bytes += piece.length
      await this.#said((done) => this.#parser.write(piece, done))
      this.#assertBounded()
      yield this.#taken()
    }
  }

  /** The last record, when the file does not end with a line break. */
  async *end(): AsyncGenerator<readonly CsvRecord[]> {
    await this.#said((done) => {
      this.#parser.once('error', done).once('end', () => done())
      this.#parser.end()
    })
    yield this.#taken()
  }

  close(): void {
    this.#parser.destroy()
  }

  #take(fields: string[], lines: number): void {
    if (fields.length > csvColumnsMax) throw tooWide(this.#line)
    for (const field of fields) this.#returns += countIn(field, '\r')
    const last = lines - this.#returns
    const inside = fields.reduce((sum, field) => sum + countIn(field, '\n'), 0)
    this.#records.push({ line: last - inside, fields })
    this.#line = last + 1
    this.#bytes = 0
    this.#cells += fields.length
    this.#headerSeen = true
  }

  #taken(): readonly CsvRecord[] {
    const records = this.#records
    this.#records = []
    return records
  }

  #assertBounded(): void {
    // The record that is being read: a million commas are not collected first.
    const { state } = this.#parser as Parser & { readonly state?: { readonly record?: readonly string[] } }
    if ((state?.record?.length ?? 0) > csvColumnsMax) throw tooWide(this.#line)
    if (this.#cells > cellsMax) throw tooLarge(`The file has more than ${cellsMax} cells.`)
    const max = this.#headerSeen ? this.#recordBytesMax : headerBytesMax
    if (this.#bytes <= max + pieceBytes) return
    throw tooLarge(`The row that begins on line ${this.#line} is longer than ${max} bytes; is a closing quote missing?`)
  }

  async #said(work: (done: (error?: Error | null) => void) => void): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => work((error) => (error ? reject(error) : resolve())))
    } catch (error) {
      throw error instanceof CsvError ? this.#unreadable(error) : error
    }
  }

  #unreadable({ code }: CsvError): Problem {
    const detail =
      code === 'CSV_QUOTE_NOT_CLOSED'
        ? `The row that begins on line ${this.#line} has a quote that is never closed.`
        : `The row that begins on line ${this.#line} is no CSV (${code}).`
    return new Problem('HMD_REQUEST_INVALID', detail, { errors: [{ pointer: `line ${this.#line}`, detail }] })
  }
}

function countIn(field: string, letter: '\r' | '\n'): number {
  return field.includes(letter) ? field.split(letter).length - 1 : 0
}

function tooWide(line: number): Problem {
  const detail = `The row that begins on line ${line} has more than ${csvColumnsMax.toLocaleString('en')} columns.`
  return new Problem('HMD_REQUEST_INVALID', detail, { errors: [{ pointer: `line ${line}`, detail }] })
}

function tooLarge(detail: string): Problem {
  return new Problem('HMD_BODY_TOO_LARGE', detail)
}
