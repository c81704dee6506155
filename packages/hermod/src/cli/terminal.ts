/**
 * stdout is for data, stderr for messages. Colour, questions and box drawing only on a terminal. A
 * closed pipe ends the program quietly.
 */
import { createInterface } from 'node:readline/promises'
import { usage } from './usage.ts'

export interface TerminalOptions {
  readonly json: boolean
  readonly plain: boolean
  readonly quiet: boolean
  readonly color: boolean
  readonly input: boolean
  readonly yes: boolean
}

export type Cell = string | number | bigint | null | undefined

const COLORS = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const
export type Color = keyof typeof COLORS

export class Terminal {
  readonly json: boolean
  readonly #options: TerminalOptions

  constructor(options: TerminalOptions) {
    this.#options = options
    this.json = options.json
  }

  /** The result of the command, to stdout. */
  data(text: string): void {
    process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  }

  /** One JSON document; 64-bit numbers as strings. */
  document(value: unknown): void {
    this.data(toJson(value))
  }

  /** A message for people, to stderr. */
  say(text: string): void {
    if (!this.#options.quiet && !this.json) process.stderr.write(`${text}\n`)
  }

  paint(color: Color, text: string): string {
    return this.#options.color ? `\u001b[${COLORS[color]}m${text}\u001b[0m` : text
  }

  /** Numbers are aligned to the right; nothing is cut off. */
  table(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const cells = rows.map((row) => row.map((cell) => clean(cell ?? '–')))
    if (this.#options.plain) {
      for (const row of [head, ...cells]) this.data(row.join('\t'))
      return
    }
    const right = head.map((_, at) => rows.every((row) => isNumber(row[at])))
    const widths = head.map((name, at) => Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)))
    const line = (row: readonly string[]) =>
      row
        .map((cell, at) => (right[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
        .join('  ')
        .trimEnd()
    this.data(this.paint('dim', line(head)))
    for (const row of cells) this.data(line(row))
  }

  /** Without a terminal there is nobody to ask: then --yes is needed. */
  async confirm(question: string): Promise<boolean> {
    if (this.#options.yes) return true
    if (!this.#options.input || !process.stdin.isTTY || !process.stderr.isTTY) {
      throw usage(`${question} Nobody is here to answer.`, 'Add --yes to go on without being asked.')
    }
    const asked = createInterface({ input: process.stdin, output: process.stderr })
    try {
      return /^y(es)?$/i.test((await asked.question(`${question} [y/N] `)).trim())
    } finally {
      asked.close()
    }
  }
}

export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each), 2)
}

function isNumber(cell: Cell): boolean {
  return typeof cell === 'number' || typeof cell === 'bigint' || cell === null || cell === undefined
}

/** Removes control characters: data must not control the terminal. */
function clean(cell: string | number | bigint): string {
  return String(cell).replace(/\p{Cc}+/gu, ' ')
}

/** `3 min ago`; the exact time is in --json. */
export function ago(at: Date | null, nowMs: number, duration: (ms: number) => string): string {
  return at === null ? '–' : `${duration(Math.max(0, nowMs - at.getTime()))} ago`
}

/** A closed pipe (`| head`) is not an error. */
export function endQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0)
      throw error
    })
  }
}
