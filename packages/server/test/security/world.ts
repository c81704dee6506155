// What the sweeps need: the operations of the OpenAPI document, and objects of one person for every
// path that names one.

import { randomUUID } from 'node:crypto'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Role } from '../../src/actor.ts'
import type { TestServer } from '../support/server.ts'

export interface Operation {
  readonly method: string
  readonly path: string
  /** Names of its path parameters. */
  readonly params: readonly string[]
  /** Needs no token. */
  readonly open: boolean
  readonly body: { readonly type: string; readonly example: unknown } | undefined
}

interface Described {
  readonly security?: readonly unknown[]
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> }
}

export async function operationsOf(server: TestServer): Promise<Operation[]> {
  const { paths } = (await server.ask('GET', '/openapi.json')).json() as {
    paths: Record<string, Record<string, Described>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => {
      const [content] = Object.entries(described.requestBody?.content ?? {})
      return {
        method: method.toUpperCase(),
        path,
        params: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string),
        open: described.security?.length === 0,
        body: content && { type: content[0], example: content[1].example },
      }
    }),
  )
}

export type Ids = Readonly<Record<string, string>>

let people = 0

/** Somebody nobody else asks as. */
export function newName(): string {
  return `olga-${++people}`
}

/** Objects of `name` for the parameters of a path. A new kind of path needs a line here. */
export async function idsOf(server: TestServer, { path }: Operation, name: string): Promise<Ids> {
  const [, kind] = /^\/api\/v2\/(?:admin\/)?([\w-]+)/.exec(path) ?? []
  const made = async (url: string, body: object): Promise<Ids> => {
    const answer = await server.ask('POST', url, { as: name, role: 'editor', body })
    if (answer.statusCode !== 201) throw new Error(`${url}: ${answer.body}`)
    return { id: answer.json().id }
  }
  const draft = { title: 'Secret plan', docType: 'RFC', product: 'Apollo' }
  const makers: Record<string, () => Promise<Ids>> = {
    drafts: () => made('/api/v2/drafts', draft),
    reviews: () => made('/api/v2/drafts', draft),
    documents: () => made('/api/v2/documents', draft),
    approvals: () => made('/api/v2/documents', draft),
    tokens: () => made('/api/v2/tokens', { name: 'robot', scopes: ['search:read'] }),
    people: () => personIds(server, name),
    imports: async () => ({ id: randomUUID() }),
  }
  const maker = makers[kind ?? '']
  if (maker === undefined) throw new Error(`say in world.ts which ids ${path} takes`)
  return maker()
}

async function personIds(server: TestServer, name: string): Promise<Ids> {
  await server.ask('GET', '/api/v2/tokens', { as: name, role: 'reader' })
  const [row] = await server.db.query<{ id: string; identity: string }>(
    `select person_id as id, id as identity from hermod.person_identity where value = $1`,
    [`sub-${name}`],
  )
  if (row === undefined) throw new Error(`${name} is not known`)
  return { id: row.id, identityId: row.identity, mergeId: '1' }
}

export interface Sweeping {
  readonly ids?: Ids
  readonly authorization?: string | undefined
}

/** The operation with the example of its own document, on these objects, as the bearer. */
export function perform(
  server: TestServer,
  { method, path, body }: Operation,
  { ids = {}, authorization }: Sweeping,
): Promise<LightMyRequestResponse> {
  const headers: Record<string, string> = { 'if-match': '*' }
  if (authorization !== undefined) headers.authorization = authorization
  if (method === 'POST') headers['idempotency-key'] = randomUUID()
  if (body !== undefined) headers['content-type'] = body.type
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'missing')
  const payload = body && { payload: textOf(body.example) }
  return server.app.inject({ method, url, headers, ...payload } as InjectOptions)
}

function textOf(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example ?? {})
}

export async function bearer(server: TestServer, name: string, role: Role): Promise<string> {
  return `Bearer ${await server.token(name, role)}`
}
