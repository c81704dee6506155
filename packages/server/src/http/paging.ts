/**
 * Lists: opaque cursors that are signed, bound to the filter they came from, and stable while rows
 * are added. A forged or foreign one is refused, never guessed at.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Type } from 'typebox'
import type { Place } from '../place.ts'
import { Problem } from '../problems.ts'

export const pageQuery = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'At most 200' }),
  cursor: Type.Optional(Type.String({ maxLength: 2_000, description: 'From nextCursor' })),
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
  readonly hasMore: boolean
}

/**
 * A page of `limit` rows from limit + 1 rows read. `filter` is what the list was narrowed by; a
 * cursor serves no other list.
 */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  placeOf: (row: T) => Place,
  { secret, filter }: { readonly secret: string; readonly filter: unknown },
): Page<T> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const hasMore = rows.length > limit
  const nextCursor = hasMore && last !== undefined ? seal(placeOf(last), secret, filter) : null
  return { items, nextCursor, hasMore }
}

export function placeOf(
  cursor: string | undefined,
  { secret, filter }: { readonly secret: string; readonly filter: unknown },
): Place | undefined {
  if (cursor === undefined) return undefined
  const [body = '', signature = ''] = cursor.split('.')
  const wanted = sign(body, secret, filter)
  const given = Buffer.from(signature, 'base64url')
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    throw new Problem('HMD_CURSOR_INVALID', 'Start again without a cursor, with the same filter.', {
      errors: [{ pointer: '?cursor', detail: 'is not one this list gave out' }],
    })
  }
  return JSON.parse(Buffer.from(body, 'base64url').toString()) as Place
}

function seal(place: Place, secret: string, filter: unknown): string {
  const body = Buffer.from(JSON.stringify(place)).toString('base64url')
  return `${body}.${sign(body, secret, filter).toString('base64url')}`
}

function sign(body: string, secret: string, filter: unknown): Buffer {
  const text = `${JSON.stringify(filter)}\0${body}`
  return createHmac('sha256', secret).update(text).digest().subarray(0, 16)
}

/** `Link: <…>; rel="next"` beside nextCursor. */
export function nextLink(url: string, nextCursor: string | null): Record<string, string> {
  if (nextCursor === null) return {}
  const next = new URL(url, 'http://localhost')
  next.searchParams.set('cursor', nextCursor)
  return { link: `<${next.pathname}${next.search}>; rel="next"` }
}
