// What a healthy OpenSearch node will not answer: the error table, from a server with a script.

import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { HermodError } from '../../src/errors.ts'
import { checkDefinition } from '../../src/sinks/search/check-definition.ts'
import { type OpenSearchOptions, opensearch } from '../../src/sinks/search/opensearch.ts'

type Script = (request: IncomingMessage, response: ServerResponse, body: string) => void

const password = 'pa55-of-nobody'
const definition = checkDefinition('docs', { fields: { title: { kind: 'text' } } })
const hermod = { definition, createdAt: new Date(0).toISOString(), liveAt: 1 }
const generation = (...aliases: string[]) => ({
  aliases: Object.fromEntries(aliases.map((alias) => [alias, {}])),
  mappings: { _meta: { hermod } },
})

let listed: Record<string, object>
let script: Script
let seen: string[]
const server = http.createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  seen.push(`${request.method} ${request.url?.split('?')[0]}`)
  if (request.method === 'GET' && request.url?.startsWith('/docs_g*')) {
    response.end(JSON.stringify(listed))
  } else script(request, response, body)
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  listed = { docs_g1: generation('docs', 'docs.g1') }
  seen = []
})

function engine(options: Partial<OpenSearchOptions> = {}) {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const made = opensearch({ url, username: 'ann', password, timeoutMs: 500, ...options })
  onTestFinished(() => made.close())
  return made
}

const documents = ['a', 'b', 'c'].map((id, at) => {
  return { id, version: BigInt(at + 1), json: '{"title":"private words"}' }
})
const write = async (count = 3) => engine().upsert('docs', documents.slice(0, count))
const names = (outcomes: readonly { outcome: string }[]) => outcomes.map(({ outcome }) => outcome)

const answers = (status: number, body: unknown, headers = {}): Script => {
  return (_, response) => {
    response.writeHead(status, headers)
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}
const failure = (status: number, type: string, reason = '', headers = {}) =>
  answers(status, { error: { type, reason, root_cause: [] }, status }, headers)
const items = (...given: (readonly [string, number, (string | undefined)?, string?])[]) =>
  answers(200, {
    items: given.map(([_id, status, type, reason = 'because']) => {
      return { index: { _id, status, ...(type !== undefined && { error: { type, reason } }) } }
    }),
  })

describe('one item', () => {
  it.each([
    [201, undefined, 'delivered'],
    [409, 'version_conflict_engine_exception', 'superseded'],
    [400, 'mapper_parsing_exception', 'rejected'],
    [400, 'a_name_of_tomorrow', 'rejected'],
    [429, 'es_rejected_execution_exception', 'unavailable'],
    [429, 'circuit_breaking_exception', 'unavailable'],
    [403, 'cluster_block_exception', 'unavailable'],
    [403, 'security_exception', 'misconfigured'],
    [404, 'index_not_found_exception', 'misconfigured'],
    [500, 'exception', 'unavailable'],
    [503, 'unavailable_shards_exception', 'unavailable'],
  ] as const)('%s %s is %s, and the others are settled by their own', async (status, type, is) => {
    script = items(['a', 201], ['b', status, type], ['c', 200])
    expect(names(await write())).toEqual(['delivered', is, 'delivered'])
  })

  it('says what is wrong, never what is in the document', async () => {
    const says = `failed to parse field [pages] of type [double] in document with id 'b'. Preview of field's value: 'private words'`
    script = items(['a', 201], ['b', 400, 'mapper_parsing_exception', says], ['c', 201])
    const [, outcome] = await write()
    expect(outcome?.message).toContain('failed to parse field [pages] of type [double]')
    expect(JSON.stringify(outcome)).not.toContain('private')
  })

  it('a deletion of what is not there is delivered', async () => {
    script = answers(200, { items: [{ delete: { _id: 'a', status: 404 } }] })
    expect(names(await engine().delete('docs', [{ id: 'a', version: 1n }]))).toEqual(['delivered'])
  })
})

describe('the whole call', () => {
  it.each([
    [failure(413, 'too_large'), 3, 'split'],
    [failure(413, 'too_large'), 1, 'rejected'],
    [answers(413, '<html>nginx</html>'), 3, 'split'],
    [failure(400, 'illegal_argument_exception'), 3, 'split'],
    [failure(400, 'illegal_argument_exception'), 1, 'rejected'],
    [failure(401, 'security_exception'), 3, 'misconfigured'],
    [failure(403, 'security_exception'), 3, 'misconfigured'],
    [failure(403, 'cluster_block_exception'), 3, 'unavailable'],
    [failure(404, 'index_not_found_exception'), 3, 'misconfigured'],
    [failure(500, 'exception'), 3, 'unavailable'],
    [answers(502, '<html>'), 3, 'unavailable'],
    [failure(503, 'cluster_manager_not_discovered_exception'), 3, 'unavailable'],
    [answers(504, ''), 3, 'unavailable'],
    [answers(301, '', { location: 'http://127.0.0.1:1/' }), 3, 'misconfigured'],
    [answers(200, '<html>a login page</html>'), 3, 'unavailable'],
    [answers(200, ''), 3, 'unavailable'],
    [answers(200, 'null'), 3, 'unavailable'],
  ] as const)('%#: %s documents are all %s', async (answer, count, is) => {
    script = answer
    const outcomes = await write(count)
    expect(names(outcomes)).toEqual(Array.from({ length: count }, () => is))
    expect(JSON.stringify(outcomes)).not.toContain(password)
  })

  it('429 holds the destination for as long as it asks', async () => {
    script = failure(429, 'es_rejected_execution_exception', '', { 'retry-after': '7' })
    expect(await write(1)).toMatchObject([{ outcome: 'unavailable', afterMs: 7_000, status: 429 }])
  })

  it('is sent once, whatever comes back', async () => {
    script = failure(503, 'busy')
    await write()
    expect(seen.filter((line) => line.endsWith('/_bulk'))).toEqual(['POST /docs.g1/_bulk'])
  })

  it('an answer that is cut, late or too short settles only what it names', async () => {
    script = (_, response) => {
      response.writeHead(200, { 'content-length': '900' })
      response.write('{"items":[', () => response.destroy())
    }
    expect(names(await write())).toEqual(['unavailable', 'unavailable', 'unavailable'])
    script = () => {}
    const late = await engine({ timeoutMs: 100 }).upsert('docs', documents)
    expect(late[0]).toMatchObject({ outcome: 'unavailable', code: 'HTTP_TIMEOUT' })
    script = items(['a', 201])
    expect(names(await write())).toEqual(['delivered', 'retry', 'retry'])
    script = items(['a', 201], ['z', 201], ['c', 201], ['d', 201])
    expect(names(await write())).toEqual(['delivered', 'retry', 'delivered'])
    script = answers(200, { took: 1 })
    expect(names(await write())).toEqual(['retry', 'retry', 'retry'])
  })
})

describe('generations', () => {
  it('the worst of them counts, and one that was dropped meanwhile does not', async () => {
    listed = {
      docs_g1: generation('docs', 'docs.g1'),
      docs_g2: generation('docs.building', 'docs.g2'),
    }
    const [done, missing] = [items(['a', 201]), failure(404, 'index_not_found_exception')]
    const full = failure(429, 'es_rejected_execution_exception')
    const byGeneration = (second: Script): Script => {
      return (request, ...rest) => (request.url?.startsWith('/docs.g2/') ? second : done)(request, ...rest)
    }
    script = byGeneration(full)
    expect(names(await write(1))).toEqual(['unavailable'])
    script = byGeneration((...given) => {
      delete listed.docs_g2
      missing(...given)
    })
    expect(names(await write(1))).toEqual(['delivered'])
  })

  it('a writer that knows only what is gone finds what came instead', async () => {
    const one = engine()
    script = items(['a', 201])
    expect(names(await one.upsert('docs', documents.slice(0, 1)))).toEqual(['delivered'])
    listed = { docs_g2: generation('docs', 'docs.g2') }
    script = (request, ...rest) => {
      const gone = request.url?.startsWith('/docs.g1/')
      const answer = gone ? failure(404, 'index_not_found_exception') : items(['a', 201])
      answer(request, ...rest)
    }
    expect(names(await one.upsert('docs', documents.slice(0, 1)))).toEqual(['delivered'])
    expect(seen.at(-1)).toBe('POST /docs.g2/_bulk')
  })

  it('a swap that somebody else was faster with is refused', async () => {
    listed = { docs_g2: generation('docs.building', 'docs.g2') }
    script = (request, ...rest) => {
      const gone = request.url === '/_aliases'
      const answer = gone ? failure(404, 'aliases_not_found_exception') : answers(200, {})
      answer(request, ...rest)
    }
    await expect(engine().swapGeneration('docs')).rejects.toMatchObject({
      code: 'HMD_SEARCH_GENERATION',
    })
  })
})

it('a search that ran out of time or lost a shard is no result', async () => {
  script = answers(200, { timed_out: true, hits: { hits: [] } })
  await expect(engine().search('docs')).rejects.toThrow()
  script = failure(503, 'search_phase_execution_exception', 'Partial shards failure')
  await expect(engine().search('docs')).rejects.toMatchObject({ status: 503 })
})

it('sends its credentials in one way, and names them nowhere', async () => {
  const asked: (string | undefined)[] = []
  script = ({ headers }, response) => {
    asked.push(headers.authorization)
    response.writeHead(401).end(JSON.stringify({ error: { type: 'x', reason: headers.authorization } }))
  }
  const basic = Buffer.from(`ann:${password}`).toString('base64')
  for (const login of [{}, { username: undefined, password: undefined, apiKey: 'k3y-of-ann' }]) {
    const error = await engine(login as object)
      .probe()
      .catch((e) => e)
    expect(error.message).toMatch(/^OpenSearch answered 401 \(x\): \w+ •••$/)
    expect(error.message).not.toMatch(new RegExp(`${basic}|${password}|k3y-of-ann`))
  }
  expect(asked).toEqual([`Basic ${basic}`, 'ApiKey k3y-of-ann'])
})

it('options that make no sense are refused, and a secret is not repeated', () => {
  const url = 'http://127.0.0.1:9200'
  for (const options of [
    ...[{}, { url: 'nonsense' }, { url: `ftp://ann:${password}@host` }, { url, shards: 0 }],
    ...[
      { url, username: 'ann' },
      { url, password },
      { url, apiKey: '' },
      { url, timeout: 1 },
    ],
    { url, apiKey: password, bearer: password },
  ]) {
    const error = caught(() => opensearch(options as OpenSearchOptions))
    expect(error).toBeInstanceOf(HermodError)
    expect(JSON.stringify(error)).not.toContain(password)
  }
})

function caught(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}
