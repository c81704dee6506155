/** The first page and its parts, read once and served from memory. No build, no other host. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'

const folder = new URL('../../public/', import.meta.url)

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

export function pageRoutes(app: FastifyInstance): void {
  serveFile(app, '/', 'index.html')
  const parts = readdirSync(folder).filter((name) => !name.endsWith('.html'))
  for (const name of parts) serveFile(app, `/${name}`, name)
}

/** The browser asks each time and gets 304 while nothing changed. */
export function serveFile(app: FastifyInstance, url: string, name: string): void {
  const body = readFileSync(new URL(name, folder))
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const type = types[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream'
  app.get(url, { schema: { hide: true } }, async (request, reply) => {
    reply.header('etag', etag).header('cache-control', 'no-cache').type(type)
    return request.headers['if-none-match'] === etag ? reply.code(304).send() : body
  })
}
