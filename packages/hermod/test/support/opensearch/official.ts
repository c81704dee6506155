// The vendor's own client behind the engine's interface: the same cases, spoken by somebody else.

import { Client, errors } from '@opensearch-project/opensearch'
import { HttpError } from '../../../src/sinks/http.ts'
import {
  type ApiCall,
  bulkParameters,
  type Found,
  type IndexState,
  indexParameters,
  type Json,
  type OpenSearchApi,
  OpenSearchError,
  readFound,
  readSaid,
  searchParameters,
  type Token,
} from '../../../src/sinks/search/opensearch/api.ts'

export class OfficialOpenSearch implements OpenSearchApi {
  readonly #client: Client
  #closing: Promise<void> | undefined

  constructor(url: string) {
    this.#client = new Client({ node: url, maxRetries: 0, requestTimeout: 30_000 })
  }

  async version(call: ApiCall): Promise<string> {
    const { version } = await asked(call, () => this.#client.info())
    return `${version.distribution} ${version.number}`
  }

  async createIndex(name: string, body: Json, call: ApiCall): Promise<void> {
    await asked(call, () => this.#client.indices.create({ index: name, body: body as never }))
  }

  indexes(pattern: string, call: ApiCall): Promise<Readonly<Record<string, IndexState>>> {
    const given = { index: pattern, ...indexParameters }
    return asked(call, () => this.#client.indices.get(given)) as never
  }

  async changeMeta(name: string, meta: Json, call: ApiCall): Promise<void> {
    const given = { index: name, body: { _meta: meta } } as never
    await asked(call, () => this.#client.indices.putMapping(given))
  }

  async changeAliases(actions: readonly Json[], call: ApiCall): Promise<void> {
    const given = { body: { actions } } as never
    await asked(call, () => this.#client.indices.updateAliases(given))
  }

  async dropIndex(name: string, call: ApiCall): Promise<void> {
    await asked(call, () => this.#client.indices.delete({ index: name }))
  }

  async refresh(name: string, call: ApiCall): Promise<void> {
    await asked(call, () => this.#client.indices.refresh({ index: name }))
  }

  bulk(alias: string, lines: string, call: ApiCall): Promise<never> {
    const given = { index: alias, ...bulkParameters, body: lines } as never
    return asked(call, () => this.#client.bulk(given)) as Promise<never>
  }

  async search(name: string, body: Json, call: ApiCall): Promise<Found> {
    const given = { index: name, ...searchParameters, body } as never
    return readFound(await asked(call, () => this.#client.search(given)))
  }

  async source(name: string, id: string, call: ApiCall): Promise<Json | undefined> {
    try {
      const { _source } = await asked(call, () => this.#client.get({ index: name, id }))
      return _source as Json
    } catch (error) {
      if (error instanceof OpenSearchError && error.type === 'not_found') return undefined
      throw error
    }
  }

  async count(name: string, call: ApiCall): Promise<number> {
    const { count } = await asked(call, () => this.#client.count({ index: name }))
    return count
  }

  async analyze(name: string, analyzer: string, text: string, call: ApiCall) {
    const given = { index: name, body: { analyzer, text } }
    const { tokens } = await asked(call, () => this.#client.indices.analyze(given))
    return (tokens ?? []) as unknown as readonly Token[]
  }

  /** Closing it twice never ends. */
  async close(): Promise<void> {
    this.#closing ??= this.#client.close()
    await this.#closing
  }
}

type Asking<T> = () => Promise<{ readonly body: T }> & { abort?(): void }

async function asked<T>({ signal }: ApiCall, ask: Asking<T>): Promise<T> {
  if (signal?.aborted) throw new HttpError('ABORT_ERR', 'the call was ended', false)
  const asking = ask()
  const stop = () => asking.abort?.()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return (await asking).body
  } catch (error) {
    throw translated(error)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

function translated(error: unknown): unknown {
  if (!(error instanceof errors.ResponseError)) return error
  const { statusCode, body } = error
  if (body?.found === false) return new OpenSearchError(404, { type: 'not_found', reason: '' })
  return new OpenSearchError(statusCode ?? 0, readSaid(body))
}
