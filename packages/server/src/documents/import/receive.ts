/** Reads a whole import as it comes: splits it into rows, checks each, and keeps the good ones. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { Problem } from '../../problems.ts'
import { CsvReader, type CsvRecord } from './csv.ts'
import { LineReader, type TextLine } from './lines.ts'
import { type Checked, CsvColumns, isRefused, ofLine, type RowError } from './rows.ts'
import { Spool } from './spool.ts'

export const importFormats = ['ndjson', 'csv'] as const
export type ImportFormat = (typeof importFormats)[number]

export const importRowsMax = 1_000_000
export const importBytesMax = 4 * 1024 ** 3
export const errorsMax = 1_000
/** Most products that an all-or-nothing import locks. */
const productsMax = 10_000
const breathMs = 5

export interface ReceiveOptions {
  readonly format: ImportFormat
  /** Longest row. */
  readonly rowBytesMax: number
  readonly onProgress?: ((bytes: number, rows: number) => void) | undefined
}

/** What arrived. Whoever receives it closes it. */
export interface Received {
  readonly spool: Spool
  readonly rows: number
  readonly failed: number
  /** The first of them. */
  readonly errors: readonly RowError[]
  /** Products with numbers to give. */
  readonly products: ReadonlySet<string>
  readonly hash: string
}

export async function receive(source: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<Received> {
  const spool = await Spool.open()
  try {
    return await new Receiver(spool, options).receive(source)
  } catch (error) {
    await spool.close()
    throw error
  }
}

interface Row {
  readonly line: number
  readonly checked: Checked
}

class Receiver {
  readonly #spool: Spool
  readonly #options: ReceiveOptions
  readonly #hash = createHash('sha256')
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true })
  readonly #errors: RowError[] = []
  readonly #products = new Set<string>()
  #breathedMs = performance.now()
  #bytes = 0
  #rows = 0
  #failed = 0

  constructor(spool: Spool, options: ReceiveOptions) {
    this.#spool = spool
    this.#options = options
  }

  async receive(source: AsyncIterable<Uint8Array>): Promise<Received> {
    const split = splitter(this.#options)
    try {
      for await (const piece of source) {
        this.#count(piece)
        await this.#keep(split.push(this.#decode(piece)))
        this.#options.onProgress?.(this.#bytes, this.#rows)
      }
      await this.#keep(split.push(this.#decode()))
      await this.#keep(split.end())
    } finally {
      split.close()
    }
    return {
      spool: this.#spool,
      rows: this.#rows,
      failed: this.#failed,
      errors: this.#errors,
      products: this.#products,
      hash: this.#hash.digest('hex'),
    }
  }

  #count(piece: Uint8Array): void {
    this.#hash.update(piece)
    this.#bytes += piece.length
    if (this.#bytes > importBytesMax) throw tooLarge(`${importBytesMax} bytes`)
  }

  #decode(piece?: Uint8Array): string {
    try {
      return this.#utf8.decode(piece, { stream: piece !== undefined })
    } catch {
      const detail = `is not UTF-8 after row ${this.#rows}; save the file as UTF-8`
      throw new Problem('HMD_REQUEST_INVALID', `The body ${detail}.`, {
        errors: [{ pointer: '/', detail }],
      })
    }
  }

  async #keep(rows: AsyncIterable<Row | undefined>): Promise<void> {
    for await (const found of rows) {
      await this.#breathe()
      if (found === undefined) continue
      const { line, checked } = found
      const row = ++this.#rows
      if (row > importRowsMax) throw tooLarge(`${importRowsMax} rows`)
      if (isRefused(checked)) this.#refuse(row, line, checked)
      else if (this.#knowsProduct(checked)) await this.#spool.add({ row, line, document: checked })
      else this.#refuse(row, line, tooManyProducts)
    }
  }

  /** Others get their turn after a few milliseconds, whatever the file is made of. */
  async #breathe(): Promise<void> {
    if (performance.now() - this.#breathedMs < breathMs) return
    await setImmediate()
    this.#breathedMs = performance.now()
  }

  #refuse(row: number, line: number, problems: readonly { pointer: string; detail: string }[]) {
    this.#failed++
    for (const problem of problems) {
      if (this.#errors.length < errorsMax) this.#errors.push({ row, line, ...problem })
    }
  }

  #knowsProduct({ product, status }: { product: string; status?: string }): boolean {
    if (status === 'WIP' || this.#products.has(product)) return true
    if (this.#products.size === productsMax) return false
    this.#products.add(product)
    return true
  }
}

const tooManyProducts = [{ pointer: '/product', detail: `is one too many: at most ${productsMax} products at once` }]

/** Undefined: nothing yet, a moment to let others work. */
interface Splitter {
  push(text: string): AsyncIterable<Row | undefined>
  end(): AsyncIterable<Row | undefined>
  close(): void
}

function splitter({ format, rowBytesMax }: ReceiveOptions): Splitter {
  return format === 'ndjson' ? linesOf(rowBytesMax) : tableOf(rowBytesMax)
}

function linesOf(rowBytesMax: number): Splitter {
  const reader = new LineReader(rowBytesMax)
  async function* rows(lines: readonly TextLine[]): AsyncGenerator<Row> {
    for (const line of lines) yield { line: line.line, checked: ofLine(line, rowBytesMax) }
  }
  return { push: (text) => rows(reader.push(text)), end: () => rows(reader.end()), close: () => {} }
}

function tableOf(rowBytesMax: number): Splitter {
  const reader = new CsvReader(rowBytesMax)
  let columns: CsvColumns | undefined
  async function* rows(pieces: AsyncIterable<readonly CsvRecord[]>): AsyncGenerator<Row | undefined> {
    for await (const records of pieces) {
      yield undefined
      for (const record of records) {
        if (columns !== undefined) yield { line: record.line, checked: columns.read(record) }
        else columns = new CsvColumns(record)
      }
    }
  }
  return { push: (text) => rows(reader.push(text)), end: () => rows(reader.end()), close: () => reader.close() }
}

function tooLarge(bound: string): Problem {
  const detail = `An import holds at most ${bound}; divide it. Nothing was imported.`
  return new Problem('HMD_BODY_TOO_LARGE', detail)
}
