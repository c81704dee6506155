/** Asks this server as one of the demo people, through the API that everybody uses. */
import { demoPeople } from '../access/development.ts'

export interface Asking {
  readonly body?: unknown
  /** If-Match: the version that was read; left out, any. */
  readonly version?: string
  /** Idempotency-Key: a repetition changes nothing. */
  readonly key?: string
}

export interface DemoClient {
  ask<T>(person: string, method: string, path: string, asking?: Asking): Promise<T>
  token(person: string): Promise<string>
}

const pathOf = (path: string) => `/api/v2${path}`

export function demoClient(url: string): DemoClient {
  const tokens = new Map<string, Promise<string>>()
  const token = (person: string) => {
    const known = tokens.get(person) ?? signIn(url, person)
    tokens.set(person, known)
    return known
  }
  const ask: DemoClient['ask'] = async <T>(
    person: string,
    method: string,
    path: string,
    { body, version, key }: Asking = {},
  ) => {
    const headers = {
      authorization: `Bearer ${await token(person)}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      'if-match': version === undefined ? '*' : `"${version}"`,
      ...(key !== undefined && { 'idempotency-key': `"${key}"` }),
    }
    const answer = await fetch(url + pathOf(path), {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    // A token that ran out is fetched anew the next time.
    if (answer.status === 401) tokens.delete(person)
    return (await read(answer, `${method} ${path}`)) as T
  }
  return { ask, token }
}

async function signIn(url: string, person: string): Promise<string> {
  const answer = await fetch(url + pathOf('/dev/sign-in'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ person }),
  })
  const { token } = (await read(answer, 'sign-in')) as { token: string }
  return token
}

async function read(answer: Response, what: string): Promise<unknown> {
  const text = await answer.text()
  const body = text === '' ? undefined : JSON.parse(text)
  if (answer.ok) return body
  throw new Error(`${what} answered ${answer.status}: ${body?.detail ?? text}`)
}

export const demoNames = demoPeople.map(({ name }) => name)
