/** Cursors of pages: opaque, and valid only for the filter they came from. */
import { createHash } from 'node:crypto'
import { HermodError } from '../errors.ts'

/** `question` is the filter as text; `key` says where the page ended. */
export function encodeCursor(key: string, question: string): string {
  return Buffer.from(`1.${digest(question)}.${key}`).toString('base64url')
}

export function decodeCursor(cursor: unknown, question: string): string {
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('latin1') : ''
  const [, bound, key] = /^1\.([0-9a-f]{16})\.(\d{1,18})$/.exec(text) ?? []
  if (key === undefined || encodeCursor(key, question) !== cursor) {
    const says = bound === undefined ? 'is not a cursor' : 'belongs to another question'
    throw new HermodError('HMD_CURSOR_INVALID', `the cursor ${says}`, { field: 'cursor' })
  }
  return key
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
