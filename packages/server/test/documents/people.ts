// People and documents the tests of this folder work with, made through the API itself.

import type { Asking, TestServer } from '../support/server.ts'

export interface Made {
  readonly id: string
  readonly version: string
}

export const example = { title: 'Ranking', docType: 'RFC', product: 'Labs' }

/** The id of whoever signs in under this name; the first request makes them. */
export async function personId(server: TestServer, name: string): Promise<string> {
  await server.ask('GET', '/api/v2/drafts', { as: name })
  const [row] = await server.db.query<{ id: string }>(
    `select p.id::text from hermod.person p join hermod.person_identity i on i.person_id = p.id
      where i.key = $1 and p.deleted_at is null limit 1`,
    [`sub-${name}`],
  )
  if (row === undefined) throw new Error(`${name} did not become a person`)
  return row.id
}

/** The body of an answer with this status; anything else says what came instead. */
export async function ok<T = Made & Record<string, unknown>>(
  server: TestServer,
  method: string,
  url: string,
  asking: Asking,
  status = 200,
): Promise<T> {
  const answer = await server.ask(method, url, asking)
  if (answer.statusCode !== status) {
    throw new Error(`${method} ${url}: ${answer.statusCode} instead of ${status}: ${answer.body}`)
  }
  return answer.body === '' ? (undefined as T) : answer.json<T>()
}

export function createDraft(
  server: TestServer,
  as: string,
  fields: object = {},
): Promise<Made & Record<string, unknown>> {
  return ok(server, 'POST', '/api/v2/drafts', { as, body: { ...example, ...fields } }, 201)
}

export async function createPublished(
  server: TestServer,
  as: string,
  fields: object = {},
): Promise<Made & Record<string, unknown>> {
  return ok(server, 'POST', '/api/v2/documents', { as, body: { ...example, ...fields } }, 201)
}
