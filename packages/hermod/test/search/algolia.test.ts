// The conformance suite for search engines, against the double of Algolia: by our plain HTTP, and once
// more by Algolia's own client. Against the service itself when HERMOD_LIVE_ALGOLIA (the address of a
// host), HERMOD_LIVE_ALGOLIA_APP and HERMOD_LIVE_ALGOLIA_KEY are set.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AlgoliaHttp } from '../../src/sinks/search/algolia/api.ts'
import { AlgoliaSearch, algolia } from '../../src/sinks/search/algolia.ts'
import { exerciseSearchEngine } from '../../src/testing/index.ts'
import { AlgoliaDouble } from '../support/algolia/double.ts'
import { OfficialAlgolia } from '../support/algolia/official.ts'
import { tellLeftOut } from '../support/left-out.ts'

const leaveOut = {
  'words are found in every text field, whatever their ending':
    'Algolia knows plurals and no stems: approving does not find approved',
  'a document of 1 MB is kept whole and found by its beginning':
    'Algolia takes records of 10 to 100 kB, by plan: larger ones are rejected with a sentence',
}

const { HERMOD_LIVE_ALGOLIA: url, HERMOD_LIVE_ALGOLIA_KEY: apiKey } = process.env
const { HERMOD_LIVE_ALGOLIA_APP: appId } = process.env

let double: AlgoliaDouble
beforeAll(async () => {
  double = await AlgoliaDouble.start()
})
afterAll(() => double.stop())

const options = () => ({
  appId: double.appId,
  apiKey: double.apiKey,
  hosts: double.hosts,
  knownMs: 20,
})

if (url && apiKey && appId) {
  describe('the service itself', () => {
    const live = { appId, apiKey, hosts: [url] }
    const indexPrefix = `t${Date.now()}`
    exerciseSearchEngine(() => algolia(live), {
      test: (name, run) => it(name, run, 120_000),
      leaveOut,
      indexPrefix,
    })

    afterAll(async () => {
      const api = new AlgoliaHttp({ ...live, timeoutMs: 30_000 })
      const names = await api.listIndices()
      for (const name of names) if (name.startsWith(indexPrefix)) await api.deleteIndex(name)
      await api.close()
    }, 120_000)
  })
} else {
  describe('by plain HTTP', () => {
    const exercise = exerciseSearchEngine(() => algolia(options()), {
      test: it,
      leaveOut,
      indexPrefix: 'plain',
    })

    it('leaves out only what Algolia does not do', () => {
      expect(exercise.cases.length).toBeGreaterThan(55)
      expect(exercise.leftOut.length).toBe(2)
    })
    tellLeftOut(exercise)
  })

  describe('by the official client', () => {
    const exercise = exerciseSearchEngine(() => new AlgoliaSearch(options(), new OfficialAlgolia(options())), {
      test: it,
      leaveOut,
      indexPrefix: 'official',
    })
    tellLeftOut(exercise)
  })
}
