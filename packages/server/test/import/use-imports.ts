// A server that documents are imported into, and what an import is made of.

import { beforeAll } from 'vitest'
import { type TestServer, useServer } from '../support/server.ts'

export interface Sent {
  readonly rows?: readonly object[]
  readonly text?: string | Buffer
  readonly type?: string
  readonly key?: string
  readonly query?: string
  readonly headers?: Record<string, string>
  readonly as?: string
}

let keys = 0
export const newKey = () => `key-${++keys}`

export const row = (number: number, more: object = {}) => ({
  title: `Document ${number}`,
  docType: 'RFC',
  product: 'Labs',
  ...more,
})
export const many = (count: number, more: (number: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, index) => row(index + 1, more(index + 1)))

export function useImports() {
  const server = useServer()
  beforeAll(async () => {
    // Signing in makes the people.
    for (const as of ['olga', 'ada', 'bert']) await server.ask('GET', '/api/v2/documents', { as })
  })
  return {
    server,
    send: (sent: Sent) => send(server, sent),
    counts: () => counts(server),
  }
}

function send(server: TestServer, { rows = [], text, type = 'application/x-ndjson', ...more }: Sent) {
  const { key = newKey(), query = '', headers = {}, as = 'olga' } = more
  const payload = text ?? rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  return server.ask('POST', `/api/v2/imports${query}`, {
    as,
    role: 'operator',
    body: payload,
    headers: { 'content-type': type, 'idempotency-key': key, ...headers },
  })
}

async function counts(server: TestServer) {
  const [found] = await server.db.query(
    `select (select count(*) from hermod.document)::int as documents, (select count(*) from hermod.document_modification_log)::int as log,
       (select count(*) from outbox.event where type ~ '^(document|draft)')::int as events,
       (select coalesce(sum(last), 0) from hermod.product_number)::int as numbers`,
  )
  return found as { documents: number; log: number; events: number; numbers: number }
}
