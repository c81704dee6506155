/**
 * What no honest client sends is refused before it is parsed or looked at: deep nesting, very many values, numbers that no double
 * holds. Parsing four megabytes of empty lists would hold the event loop for a tenth of a second and more.
 */
const depthMax = 64
/** Imports are read row by row; no other body is that large. */
const valuesMax = 20_000

const QUOTE = 34
const BACKSLASH = 92
const COMMA = 44
const OPEN_LIST = 91
const CLOSE_LIST = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/** What is too much about this text, judged by its brackets and commas; it need not be JSON. */
export function tooMuchIn(text: string): string | undefined {
  let values = 1
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) values++
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values++
      if (++depth > depthMax) return `is nested deeper than ${depthMax} levels`
    }
    if (values > valuesMax) return `holds more than ${valuesMax} values`
  }
  return undefined
}

/** The place of the closing quote. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) break
  }
  return at
}

/** `1e999` is read as infinity, which is stored as null: the pointer of the first such number. */
export function numberTooLarge(value: unknown, pointer = ''): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : pointer || '/'
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, inside] of Object.entries(value)) {
    const found = numberTooLarge(inside, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    if (found !== undefined) return found
  }
  return undefined
}
