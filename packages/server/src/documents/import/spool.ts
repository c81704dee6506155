/**
 * Rows of an import: checked as they arrive and kept in an unnamed file, so that a slow client
 * holds no transaction, a cut connection leaves nothing, and memory stays small.
 */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ImportRow } from './rows.ts'

const writeChars = 262_144
/** Rows written by one set of statements; fewer when they are large. */
const batchRows = 500
const batchChars = 1_048_576

export class Spool {
  readonly #file: FileHandle
  #text = ''
  #rows = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  static async open(): Promise<Spool> {
    const folder = await mkdtemp(join(tmpdir(), 'hermod-import-'))
    try {
      return new Spool(await open(join(folder, 'rows'), 'wx+', 0o600))
    } finally {
      // The file lives as long as it is open; nothing is left behind, however this process ends.
      await rm(folder, { recursive: true, force: true })
    }
  }

  get rows(): number {
    return this.#rows
  }

  async add({ row, line, document }: ImportRow): Promise<void> {
    this.#rows++
    this.#text += `${JSON.stringify([row, line, document])}\n`
    if (this.#text.length >= writeChars) await this.#write()
  }

  /** Can be read several times, always from the beginning. */
  async *batches(): AsyncGenerator<ImportRow[]> {
    await this.#write()
    const input = this.#file.createReadStream({ start: 0, autoClose: false, encoding: 'utf8' })
    let batch: ImportRow[] = []
    let chars = 0
    for await (const text of createInterface({ input, crlfDelay: 0 })) {
      const [row, line, document] = JSON.parse(text)
      batch.push({ row, line, document })
      chars += text.length
      if (batch.length < batchRows && chars < batchChars) continue
      yield batch
      batch = []
      chars = 0
    }
    if (batch.length > 0) yield batch
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #write(): Promise<void> {
    const text = this.#text
    this.#text = ''
    if (text !== '') await this.#file.appendFile(text)
  }
}
