// Nothing that came from outside gets into the log: a marker is planted wherever a caller can write,
// requests succeed, are refused and break the server, and every line at every level is searched.

import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { createLog } from '../../src/log.ts'
import { useServer } from '../support/server.ts'

const marker = 'gungnir7f3a'
const lines: string[] = []
const log = createLog('trace', { write: (line) => lines.push(line) })
const server = useServer({}, { log })

const planted = {
  'user-agent': `agent ${marker}`,
  cookie: `session=${marker}`,
  'x-forwarded-for': `10.0.0.1, ${marker}`,
  'x-request-id': `not kept because of the spaces ${marker}`,
  referer: `https://example.org/?q=${marker}`,
}
const draft = {
  title: `Title ${marker}`,
  docType: 'RFC',
  product: `Product ${marker}`,
  content: `Content ${marker}`,
  summary: marker,
  tags: [marker],
}

const ask = (method: string, url: string, body?: unknown, more: Record<string, string> = {}) =>
  server.ask(method, url, {
    as: `ada.${marker}`,
    headers: { ...planted, ...more },
    ...(body !== undefined && { body }),
  })

/** Rows with this title fail in the way a database puts values into its messages. */
const breakTables = `create function hermod.refuse() returns trigger language plpgsql as $$ begin
  raise exception 'invalid input value: "%"', new.title using errcode = '22P02', detail = new.content;
end $$;
create trigger refuse before insert on hermod.document for each row execute function hermod.refuse()`

async function rawRequest(text: string): Promise<void> {
  const { port } = server.app.server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {}).resume()
  socket.write(text)
  await once(socket, 'close')
}

it('no line at any level holds what a caller sent', async () => {
  const key = { 'idempotency-key': marker }
  expect((await ask('POST', '/api/v2/drafts', draft, key)).statusCode).toBe(201)
  expect((await ask('GET', `/api/v2/search?q=${marker}`)).statusCode).toBeLessThan(500)
  const secret = { name: marker, scopes: ['search:read'] }
  const token = await ask('POST', '/api/v2/tokens', secret)
  expect(token.statusCode).toBe(201)

  const authorization = `Bearer ${marker}.${marker}.${marker}`
  await server.ask('GET', `/api/v2/documents?cursor=${marker}`, { headers: { authorization } })
  await ask('GET', `/api/v2/documents?cursor=${marker}&limit=${marker}`)
  await ask('GET', `/api/v2/documents/${marker}`)
  await ask('POST', '/api/v2/drafts', { ...draft, [marker]: marker, title: 7 })
  await ask('POST', '/api/v2/drafts', `{"${marker}`, { 'content-type': 'application/json' })
  await ask('GET', `/${marker}`)
  await ask('GET', `/api/v2/${marker}/%`)

  await server.db.query(breakTables)
  const broken = await ask('POST', '/api/v2/drafts', draft)
  expect(broken.statusCode).toBe(500)
  expect(broken.body).not.toContain(marker)
  await server.db.query('alter table hermod.person_identity rename to gone')
  expect((await ask('GET', '/api/v2/drafts')).statusCode).toBe(500)

  await server.app.listen({ host: '127.0.0.1', port: 0 })
  await rawRequest(`${marker} ${marker}\r\n\r\n`)
  await rawRequest(`GET / HTTP/1.1\r\nhost: x\r\na: ${marker.repeat(2_000)}\r\n\r\n`)

  const told = lines.map((line) => JSON.parse(line))
  expect(told.filter(({ code }) => code === 'HMD_INTERNAL')).toHaveLength(2)
  expect(told.filter(({ code }) => code === 'http.answered').length).toBeGreaterThan(10)
  expect(lines.filter((line) => line.includes(marker))).toEqual([])
  expect(lines.filter((line) => line.includes(token.json().secret.slice(4)))).toEqual([])
  const others = lines.filter((line) => !line.includes('Server listening at'))
  expect(others.filter((line) => /eyJ|Bearer|127\.0\.0\.1|@example/.test(line))).toEqual([])
})

it('a failure is still told well enough to be found', () => {
  const [failed] = lines.map((line) => JSON.parse(line)).filter(({ code }) => code === 'HMD_INTERNAL')
  expect(failed).toMatchObject({
    level: 'error',
    request_id: expect.any(String),
    cause: { code: '22P02', detail: 'invalid input value: "…"', at: expect.any(Array) },
  })
  expect(failed.cause.at.length).toBeGreaterThan(0)
})
