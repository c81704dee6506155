/** What requests to the double of Meilisearch carry: bodies, parameters, and how strictly they are read. */
import type { DoubleRequest } from './double.ts'
import type { Document } from './double-filter.ts'
import { Refusal } from './double-store.ts'

export type Body = Record<string, unknown>

export const listIn = (query: URLSearchParams, name: string) => query.get(name)?.split(',') ?? []

export function checkUid(uid: string): void {
  if (/^[A-Za-z0-9_-]{1,400}$/.test(uid)) return
  const says = `\`${uid}\` is not a valid index uid. Index uid can be an integer or a string containing only alphanumeric characters, hyphens (-) and underscores (_), and can not be more than 400 bytes.`
  throw new Refusal(400, 'invalid_index_uid', says)
}

export function refuseUnknown(body: Body, known: readonly string[]): void {
  const wrong = Object.keys(body).find((name) => !known.includes(name))
  if (wrong === undefined) return
  throw new Refusal(400, 'bad_request', `Unknown field \`${wrong}\`: expected one of \`${known.join('`, `')}\``)
}

export function jsonOf({ headers, body }: DoubleRequest): unknown {
  if (!headers['content-type']?.startsWith('application/json')) throw wrongType(headers['content-type'])
  if (body.length === 0) throw new Refusal(400, 'missing_payload', 'A json payload is missing.')
  return parsed(body.toString(), 'json')
}

export function bodyOf(request: DoubleRequest): Body {
  const body = jsonOf(request)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Body
  throw new Refusal(400, 'bad_request', 'Invalid value type: expected an object')
}

export function fromQuery(query: URLSearchParams): Body {
  const number = (name: string) => (query.has(name) ? { [name]: Number(query.get(name)) } : {})
  const list = (name: string) => (query.has(name) ? { [name]: listIn(query, name) } : {})
  return {
    ...number('offset'),
    ...number('limit'),
    ...list('fields'),
    ...list('ids'),
    ...list('sort'),
    ...(query.has('filter') && { filter: query.get('filter') }),
  }
}

export function wrongType(type: string | undefined): Refusal {
  const known = '`application/json`, `application/x-ndjson`, `text/csv`'
  if (type === undefined) {
    return new Refusal(
      415,
      'missing_content_type',
      `A Content-Type header is missing. Accepted values for the Content-Type header are: ${known}`,
    )
  }
  return new Refusal(
    415,
    'invalid_content_type',
    `The Content-Type \`${type}\` is invalid. Accepted values for the Content-Type header are: ${known}`,
  )
}

/** The double reads no CSV. `lazily`: numbers without end and depth are only met by the task, as from 1.12 on. */
export function documentsIn(type: string | undefined, body: Buffer, lazily: boolean): Document[] {
  const [plain] = type?.split(';') ?? []
  if (plain !== 'application/json' && plain !== 'application/x-ndjson') throw wrongType(type)
  const kind = plain === 'application/json' ? 'json' : 'ndjson'
  const text = body.toString()
  if (text.trim() === '') throw new Refusal(400, 'missing_payload', `A ${kind} payload is missing.`)
  const values =
    kind === 'json'
      ? [parsed(text, kind, lazily)].flat()
      : text
          .split('\n')
          .filter((line) => line.trim() !== '')
          .map((line) => parsed(line, kind, lazily))
  for (const value of values) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(kind)
  }
  return values as Document[]
}

export const LONE = /\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i

/** Stricter than JavaScript: half a surrogate pair and numbers without end are no JSON. */
export function parsed(text: string, kind: string, lazily = false): unknown {
  if (LONE.test(text.replaceAll('\\\\', ''))) throw malformed(kind)
  try {
    return JSON.parse(text, (_, value) => {
      if (!lazily && typeof value === 'number' && !Number.isFinite(value)) throw malformed(kind)
      return value
    })
  } catch {
    throw malformed(kind)
  }
}

export const malformed = (kind: string) =>
  new Refusal(400, 'malformed_payload', `The \`${kind}\` payload provided is malformed.`)
