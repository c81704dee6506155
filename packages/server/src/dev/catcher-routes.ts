/** What the catchers caught: a small page, and the same as JSON. Only under `npm start`. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { serveFile } from '../http/page.ts'
import { notFound } from '../problems.ts'
import type { MailCatcher } from './mail-catcher.ts'
import { ring } from './ring.ts'

interface CaughtHook {
  readonly id: number
  readonly receivedAt: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, unknown>>
  /** Cut at 64 kB. */
  readonly body: string
  readonly bytes: number
}

const hooksMax = 500
const bodyBytesMax = 65_536
const hidden = { schema: { hide: true } }

export async function catcherRoutes(app: FastifyInstance, mail: MailCatcher): Promise<void> {
  serveFile(app, '/catcher', 'catcher.html')
  app.get('/catcher/mails', hidden, async () => ({
    items: mail.list().map(({ source: _, ...rest }) => rest),
  }))
  app.get<{ Params: { id: string } }>('/catcher/mails/:id', hidden, async ({ params }, reply) => {
    const found = mail.list().find(({ id }) => String(id) === params.id)
    if (found === undefined) throw notFound('caught mail with this id')
    return reply.type('text/plain; charset=utf-8').send(found.source)
  })
  await app.register(hookRoutes)
}

/** Takes any body of any type. */
async function hookRoutes(app: FastifyInstance): Promise<void> {
  const hooks = ring<CaughtHook>(hooksMax)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.get('/catcher/hooks', hidden, async () => ({ items: hooks.list() }))
  app.post('/catcher/hooks', hidden, async (request) => ({ caught: caught(request) }))
  app.post('/catcher/hooks/*', hidden, async (request) => ({ caught: caught(request) }))
  const caught = (request: FastifyRequest) => hooks.add((id) => hookOf(id, request)).id
}

function hookOf(id: number, { method, url, headers, body }: FastifyRequest): CaughtHook {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  return {
    id,
    receivedAt: new Date().toISOString(),
    method,
    path: url,
    headers,
    body: bytes.subarray(0, bodyBytesMax).toString('utf8'),
    bytes: bytes.length,
  }
}
