// The document is valid OpenAPI 3.1 and complete: a name, a summary, a tag, an example of each body,
// every answer, and the problems each operation can meet.

import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly { readonly name: string; readonly required?: boolean; readonly schema: object }[]
  readonly requestBody?: {
    readonly content: Record<string, { schema: Record<string, unknown>; example?: unknown }>
  }
  readonly responses: Record<string, { description?: string; content?: Record<string, unknown> }>
}

const server = useServer()
let document: { openapi: string; paths: Record<string, Record<string, Operation>> }
let all: { name: string; operation: Operation }[] = []

beforeAll(async () => {
  document = (await server.ask('GET', '/openapi.json')).json()
  all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  )
})

/** Names of the operations for which something is missing. */
const without = (has: (operation: Operation) => boolean) =>
  all.filter(({ operation }) => !has(operation)).map(({ name }) => name)

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1 by its schema', async () => {
    expect(document.openapi).toBe('3.1.0')
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(errors ?? []).toEqual([])
    expect(valid).toBe(true)
  })

  it('every operation has a name of its own, a summary and a tag', () => {
    expect(without(({ operationId, summary, tags }) => !!(operationId && summary && tags?.length))).toEqual([])
    expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length)
  })

  it('every answer is described, and every operation answers with problems', () => {
    expect(without(({ responses }) => Object.values(responses).every(({ description }) => !!description))).toEqual([])
    const usual = ['400', '401', '403', '429', '431', '500', '503']
    expect(
      without(({ responses }) => usual.every((status) => responses[status]?.content?.['application/problem+json'])),
    ).toEqual([])
    expect(without(({ responses }) => Object.keys(responses).some((status) => status < '400'))).toEqual([])
  })

  it('every JSON body has an example and refuses unknown fields', () => {
    const bodies = (operation: Operation) => operation.requestBody?.content['application/json']
    expect(without((one) => bodies(one) === undefined || bodies(one)?.example !== undefined)).toEqual([])
    expect(without((one) => bodies(one) === undefined || bodies(one)?.schema.additionalProperties === false)).toEqual(
      [],
    )
  })

  it('what has a default is not demanded', () => {
    const demanded = all.flatMap(({ name, operation }) => [
      ...(operation.parameters ?? []).filter(({ required, schema }) => required && 'default' in schema).map(() => name),
      ...Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => {
        const { required = [], properties = {} } = schema as {
          required?: string[]
          properties?: Record<string, object>
        }
        return required.filter((field) => 'default' in (properties[field] ?? {})).map((field) => `${name} ${field}`)
      }),
    ])
    expect(demanded).toEqual([])
  })

  it('a body that may be too slow or too large says so', () => {
    const slow = (operation: Operation) => ['408', '413'].every((status) => operation.responses[status])
    expect(without((one) => one.requestBody === undefined || slow(one))).toEqual([])
  })

  it('a token for somebody who was merged away meanwhile is 404, and says so', () => {
    expect(document.paths['/api/v2/tokens']?.post?.responses['404']).toBeDefined()
  })

  it('names are in camelCase', () => {
    const names = all.flatMap(({ operation }) => [
      ...(operation.parameters ?? []).map(({ name }) => name),
      ...propertiesOf(operation),
    ])
    const odd = names.filter(
      (name) => !/^([a-z][a-zA-Z0-9]*|If-Match|If-None-Match|Idempotency-Key|[a-z-]+)$/.test(name),
    )
    expect([...new Set(odd)]).toEqual([])
  })

  it('items are asked to be unique only where that costs no more than their number', () => {
    expect(without(({ requestBody }) => uniquenessOf(requestBody).every(isScalar))).toEqual([])
  })
})

type Items = { readonly items?: { readonly type?: string } }
const isScalar = ({ items }: Items) => ['string', 'integer', 'number'].includes(items?.type ?? '')

function uniquenessOf(value: unknown): Items[] {
  if (typeof value !== 'object' || value === null) return []
  const inside = Object.values(value).flatMap(uniquenessOf)
  return 'uniqueItems' in value ? [value as Items, ...inside] : inside
}

function propertiesOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inside]) => [
    ...(key === 'properties' ? Object.keys(inside as object) : []),
    ...propertiesOf(inside),
  ])
}
