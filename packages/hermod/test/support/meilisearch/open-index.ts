// An engine on a double of Meilisearch of its own, with the index `documents` in it, and what tests
// write into that index.

import { afterAll } from 'vitest'
import type { Upsert } from '../../../src/sinks/search/index.ts'
import { type Meilisearch, meilisearch } from '../../../src/sinks/search/meilisearch.ts'
import type { Outcome } from '../../../src/sinks/sink.ts'
import { type DoubleRequest, type MeilisearchDouble, meilisearchDouble } from './double.ts'

export const key = 'double-master-key'
export const definition = {
  fields: { title: { kind: 'text' }, pages: { kind: 'number' } },
} as const
export const wider = {
  fields: { ...definition.fields, owner: { kind: 'keyword', facet: true } },
} as const

export interface OpenIndex {
  readonly double: MeilisearchDouble
  readonly engine: Meilisearch
}

const closers: (() => Promise<unknown>)[] = []

afterAll(async () => {
  for (const close of closers.splice(0)) await close()
})

/** Closed when the file ends. */
export async function openIndex(version?: string): Promise<OpenIndex> {
  const double = await meilisearchDouble({ key, ...(version !== undefined && { version }) })
  const engine = meilisearch({ url: double.url, key, timeoutMs: 2_000, taskMs: 5_000 })
  closers.push(() => engine.close().then(() => double.stop()))
  await engine.ensureIndex('documents', definition)
  return { double, engine }
}

export const titled = (id: string, version: number, title = `title of ${id}`): Upsert => ({
  id,
  version: BigInt(version),
  json: JSON.stringify({ title }),
})
export const two = () => [titled('a', 1), titled('b', 2)]
export const names = (outcomes: readonly Outcome[]) => outcomes.map(({ outcome }) => outcome)
export const isWrite = ({ method, path }: DoubleRequest) => method === 'POST' && path.endsWith('/documents/documents')
