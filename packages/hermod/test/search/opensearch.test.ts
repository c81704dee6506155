// The conformance suite for search engines, against a real OpenSearch node: by the engine's own HTTP,
// and once more by the vendor's client. scripts/opensearch.mjs starts a node.

import { afterAll, describe, expect, it } from 'vitest'
import { OpenSearch, opensearch } from '../../src/sinks/search/opensearch.ts'
import { exerciseSearchEngine } from '../../src/testing/index.ts'
import { tellLeftOut } from '../support/left-out.ts'
import { OfficialOpenSearch } from '../support/opensearch/official.ts'

const url = process.env.HERMOD_TEST_OPENSEARCH ?? ''
const settings = { shards: 1, replicas: 0, tombstonesMs: 3_600_000 }
const prefix = `exercise_${Date.now().toString(36)}`

async function refresh(index: string): Promise<void> {
  await fetch(`${url}/${index}_g*/_refresh`, { method: 'POST' })
}

afterAll(async () => {
  if (url !== '') await fetch(`${url}/${prefix}*`, { method: 'DELETE' })
})

const clients = {
  'plain HTTP': () => opensearch({ url, replicas: 0 }),
  'the official client': () => new OpenSearch(new OfficialOpenSearch(url), settings),
}

if (url === '') it.skip('OpenSearch needs HERMOD_TEST_OPENSEARCH, the URL of a node')
else Object.entries(clients).forEach(exercise)

function exercise([name, makeEngine]: [string, () => OpenSearch], at: number): void {
  describe(`OpenSearch by ${name}`, () => {
    const exercise = exerciseSearchEngine(makeEngine, {
      test: it.concurrent,
      indexPrefix: `${prefix}_${at}`,
      settle: (_, index) => refresh(index),
    })

    it('leaves nothing out', () => {
      expect(exercise.cases.length).toBeGreaterThan(50)
      expect(exercise.leftOut).toEqual([])
    })
    tellLeftOut(exercise)
  })
}
