/**
 * The hash of a document as it is in an index now: what `verify` compares. The hash that was stored with the document
 * says what was written once; somebody may have changed the rest since.
 */
import { documentHash } from './document-hash.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * `stored`: all that is kept of the document, without the stored hash. `expected`: the same, made again from the
 * document; a sentence if it cannot be. Where the two differ, a search would find, count or sort otherwise.
 */
export function shownHash(document: Fields, stored: Fields, expected: Fields | string): string {
  const fits = typeof expected === 'object' && documentHash(filled(expected)) === documentHash(filled(stored))
  return fits ? documentHash(document) : `altered-${documentHash(stored)}`
}

/** Engines may leave out what is empty. */
function filled(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)))
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** Without these fields. */
export function without(fields: Fields, ...names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}
