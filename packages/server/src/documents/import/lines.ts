/** NDJSON, piece by piece: one document a line. A line that is too long costs only its own row. */

export interface TextLine {
  readonly line: number
  /** Undefined: longer than allowed, and skipped. */
  readonly text: string | undefined
}

export class LineReader {
  readonly #charsMax: number
  #parts: string[] = []
  #chars = 0
  #line = 1

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  /** The lines that ended within this piece of text; empty ones are no lines. */
  push(text: string): TextLine[] {
    const lines: TextLine[] = []
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#take(text.slice(from, end))
      this.#endLine(lines)
      from = end + 1
    }
    this.#take(text.slice(from))
    return lines
  }

  end(): TextLine[] {
    const lines: TextLine[] = []
    this.#endLine(lines)
    return lines
  }

  #take(text: string): void {
    this.#chars += text.length
    if (this.#chars <= this.#charsMax) this.#parts.push(text)
    else this.#parts = []
  }

  #endLine(lines: TextLine[]): void {
    const line = this.#line++
    const text = this.#parts.join('')
    if (this.#chars > this.#charsMax) lines.push({ line, text: undefined })
    else if (text.trim() !== '') lines.push({ line, text })
    this.#parts = []
    this.#chars = 0
  }
}
