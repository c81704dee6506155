/** Bulk import over HTTP: a body of any length, read as it comes; an answer with every wrong row. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Actor } from '../../actor.ts'
import { actorOf } from '../../http/actor-of.ts'
import { keyOf } from '../../http/command.ts'
import { answers } from '../../http/responses.ts'
import { errorFields } from '../../log-fields.ts'
import type { Platform } from '../../platform.ts'
import { notFound, Problem } from '../../problems.ts'
import { documentId, idParams, keyHeader, orNull, time } from '../schemas.ts'
import { type ImportFormat, type Received, receive } from './receive.ts'
import {
  type Claim,
  claimImport,
  findImport,
  type ImportMode,
  type ImportRecord,
  importModes,
  importStates,
  maySeeImport,
} from './record.ts'
import { checkImport, writeImport } from './run.ts'
import { checkViewOf, importRefused, viewOf } from './view.ts'

const mediaTypes: Readonly<Record<string, ImportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'text/csv': 'csv',
}
/** At once in this process: each holds a file. */
const importsMax = 16
/** Of one person: a slow sender must not take the places of others. */
const importsOfOneMax = 4
/** Written at once: each holds a connection; the others wait. */
const writingMax = 4
/** A body that brings less than this in this time is given up. */
const idleMs = 60_000
const idleBytes = 16_384

const counts = Type.Object({
  total: Type.Integer(),
  done: Type.Integer({ description: 'The last row looked at' }),
  imported: Type.Integer(),
  failed: Type.Integer(),
})
const rowErrors = Type.Array(
  Type.Object({
    row: Type.Integer({ description: 'Rows of data from 1' }),
    line: Type.Integer(),
    pointer: Type.String(),
    detail: Type.String(),
  }),
  { description: 'The first 1,000' },
)
const importView = Type.Object(
  {
    id: documentId,
    state: Type.Enum([...importStates]),
    mode: Type.Enum([...importModes]),
    rows: counts,
    errors: rowErrors,
    reason: orNull(Type.String()),
    startedAt: time,
    endedAt: orNull(time),
  },
  { description: 'An import and what became of it' },
)
const checkView = Type.Object(
  { dryRun: Type.Literal(true), rows: counts, errors: rowErrors },
  { description: 'What it would do; nothing was written' },
)

const query = Type.Object(
  {
    mode: Type.Enum([...importModes], {
      default: 'all',
      description: 'All rows or none, or every good row',
    }),
    dryRun: Type.Boolean({ default: false, description: 'Only say what would happen' }),
  },
  { additionalProperties: false },
)

const headers = Type.Object({
  ...keyHeader.properties,
  prefer: Type.Optional(Type.String({ description: '`respond-async`: answer 202 as soon as the body has arrived' })),
})

const importing = {
  tags: ['imports'],
  operationId: 'importDocuments',
  summary: 'Import documents from NDJSON or CSV, five or half a million',
  description:
    'One document a row, as for POST /api/v2/documents; people also by verified e-mail address. An Idempotency-Key is required unless it is a dry run.',
  consumes: Object.keys(mediaTypes),
  querystring: query,
  headers,
  response: answers({ 200: checkView, 201: importView, 202: importView }, 408, 409, 413, 415, 422),
}
const reading = {
  tags: ['imports'],
  operationId: 'getImport',
  summary: 'How an import is doing',
  params: idParams,
  response: answers({ 200: importView }, 404),
}

export function importRoutes(app: FastifyInstance, platform: Platform): void {
  const config = { permission: 'import:write' as const }
  app.get('/api/v2/imports/:id', { config, schema: reading }, async (request) => {
    const { id } = request.params as { id: string }
    const record = await findImport(platform.pool, id)
    if (record === undefined || !maySeeImport(record, actorOf(request))) {
      throw notFound('import with this id')
    }
    return viewOf(record)
  })
  // In a scope of its own: no other route takes these bodies.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    for (const type of Object.keys(mediaTypes)) {
      scope.addContentTypeParser(type, (_request, body, done) => done(null, body))
    }
    const running = new Running()
    scope.addHook('onClose', () => running.end())
    const options = { config: { ...config, bucket: 'import' as const, slowBody: true } }
    scope.post('/api/v2/imports', { ...options, schema: importing }, (request, reply) =>
      running.count(callerOf(request), () => answer(platform, request, reply, running)),
    )
  })
}

function callerOf(request: FastifyRequest): string {
  const { personId, identity } = actorOf(request)
  return personId ?? identity
}

/** The imports of this process: whose they are, and when the last has ended. */
class Running {
  readonly stop = new AbortController()
  readonly #all = new Map<Promise<unknown>, string>()
  readonly #waiting: (() => void)[] = []
  #writing = 0

  async count<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const own = [...this.#all.values()].filter((one) => one === caller).length
    if (own >= importsOfOneMax) throw busy(`${own} of your imports are running here`)
    if (this.#all.size >= importsMax) throw busy(`${importsMax} imports are running here`)
    return this.keep(caller, work())
  }

  keep<T>(caller: string, work: Promise<T>): Promise<T> {
    const settled = work.catch(() => {}).finally(() => this.#all.delete(settled))
    this.#all.set(settled, caller)
    return work
  }

  /** One after the other, once there are enough. */
  async write<T>(work: () => Promise<T>): Promise<T> {
    if (this.#writing >= writingMax) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#writing++
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#writing--
      else next()
    }
  }

  async end(): Promise<void> {
    this.stop.abort(new Problem('HMD_UNAVAILABLE', 'The server stops; send the import again.'))
    await Promise.all(this.#all.keys())
  }
}

function busy(what: string): Problem {
  return new Problem('HMD_UNAVAILABLE', `${what}; try again when one has ended.`, { headers: { 'retry-after': '30' } })
}

async function answer(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  running: Running,
): Promise<FastifyReply> {
  const actor = actorOf(request)
  const { mode, dryRun } = request.query as { mode: ImportMode; dryRun: boolean }
  const key = keyOf(request, !dryRun)
  const received = await receive(bodyOf(request), {
    format: formatOf(request),
    rowBytesMax: platform.config.limits.documentBytes,
  })
  if (dryRun) return reply.send(await running.write(() => dryRunOf(platform, actor, received)))
  let handedOver = false
  try {
    const claim = await claimImport(platform, actor, { mode, key }, received)
    const location = `/api/v2/imports/${claim.record.id}`
    reply.header('location', location)
    if (!claim.mine) return answerWith(reply.header('idempotent-replayed', 'true'), claim.record)
    const { signal } = running.stop
    const writing = running.write(() => writeImport(platform, actor, received, claim, { signal }))
    if (!isAsync(request)) return answerWith(reply, await writing)
    handedOver = true
    running.keep(callerOf(request), inBackground(platform, received, claim, writing))
    return reply.code(202).send(viewOf(claim.record))
  } finally {
    if (!handedOver) await received.spool.close()
  }
}

async function dryRunOf(platform: Platform, actor: Actor, received: Received): Promise<object> {
  try {
    return checkViewOf(received, await checkImport(platform, actor, received))
  } finally {
    await received.spool.close()
  }
}

async function inBackground(
  platform: Platform,
  { spool }: Received,
  { record: { id } }: Claim,
  writing: Promise<ImportRecord>,
): Promise<void> {
  try {
    await writing
  } catch (error) {
    platform.log.error({ code: 'import.interrupted', import: id, ...errorFields(error) })
  } finally {
    await spool.close()
  }
}

function formatOf({ headers }: FastifyRequest): ImportFormat {
  const [type = ''] = String(headers['content-type'] ?? '').split(';')
  const format = mediaTypes[type.trim().toLowerCase()]
  const encoding = headers['content-encoding']
  if (format !== undefined && (encoding === undefined || encoding === 'identity')) return format
  const known = Object.keys(mediaTypes).join(', ')
  throw new Problem('HMD_MEDIA_TYPE', `Send one of ${known}, without Content-Encoding.`)
}

/** The body as a stream; it ends when the client disconnects, stops sending, or only trickles. */
async function* bodyOf(request: FastifyRequest): AsyncGenerator<Buffer> {
  const body = (request.body ?? []) as NodeJS.ReadableStream & { destroy(error: Error): void }
  const give = () => body.destroy(asleep())
  let timer = setTimeout(give, idleMs)
  let bytes = 0
  try {
    for await (const piece of body) {
      bytes += (piece as Buffer).length
      yield piece as Buffer
      if (bytes < idleBytes) continue
      bytes = 0
      clearTimeout(timer)
      timer = setTimeout(give, idleMs)
    }
  } catch (error) {
    throw error instanceof Problem ? error : cutOff(error)
  } finally {
    clearTimeout(timer)
  }
}

function asleep(): Problem {
  const detail = `Too little came within ${idleMs / 1000} s; nothing was imported.`
  return new Problem('HMD_REQUEST_SLOW', detail, { headers: { connection: 'close' } })
}

function cutOff(cause: unknown): Problem {
  const detail = 'The body ended before it was complete; nothing was imported.'
  return new Problem('HMD_REQUEST_INVALID', detail, { cause })
}

function isAsync({ headers }: FastifyRequest): boolean {
  return /(^|,)\s*respond-async\s*(,|;|$)/i.test(String(headers.prefer ?? ''))
}

function answerWith(reply: FastifyReply, record: ImportRecord): FastifyReply {
  if (record.state !== 'failed') return reply.code(201).send(viewOf(record))
  throw importRefused(record)
}
