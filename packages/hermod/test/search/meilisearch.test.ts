// The conformance suite for search engines, against Meilisearch: the double, over plain HTTP and through
// the official client; or a real server, when HERMOD_LIVE_MEILISEARCH (and …_KEY) say where it is.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { meilisearchOverHttp } from '../../src/sinks/search/meilisearch/api.ts'
import { Suspects } from '../../src/sinks/search/meilisearch/suspects.ts'
import { Tasks } from '../../src/sinks/search/meilisearch/tasks.ts'
import { Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { exerciseSearchEngine } from '../../src/testing/index.ts'
import { tellLeftOut } from '../support/left-out.ts'
import { type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch/double.ts'
import { OfficialApi } from '../support/meilisearch/official.ts'

const live = process.env.HERMOD_LIVE_MEILISEARCH
const key = live === undefined ? 'double-master-key' : process.env.HERMOD_LIVE_MEILISEARCH_KEY
const prefix = `hermod_test_${randomBytes(4).toString('hex')}_`
const taskMs = 300_000
const tombstonesMs = 7 * 86_400_000
const caseMs = live === undefined ? 15_000 : 120_000

let double: MeilisearchDouble | undefined
let url = live ?? ''

beforeAll(async () => {
  if (live !== undefined) return
  double = await meilisearchDouble({ key: key as string })
  url = double.url
})

/** A real server is left as it was found. */
afterAll(async () => {
  if (live !== undefined) {
    const api = meilisearchOverHttp({ url, key })
    const tasks: number[] = []
    for (const { uid } of await api.indexes()) {
      if (uid.startsWith(prefix)) tasks.push(await api.deleteIndex(uid))
    }
    await new Tasks(api, { waitMs: taskMs, suspects: new Suspects() }).results(tasks)
    await api.close()
  }
  await double?.stop()
}, taskMs)

const leaveOut = {
  'words are found in every text field, whatever their ending':
    'Meilisearch knows no stems: a word is found as it is written, with typing errors and while it is typed',
}

const test = (name: string, run: () => Promise<void>) => it(name, run, caseMs)

describe(`over plain HTTP, ${live === undefined ? 'the double' : 'a real server'}`, () => {
  const exercise = exerciseSearchEngine(() => meilisearch({ url, prefix, taskMs, ...(key !== undefined && { key }) }), {
    test,
    leaveOut,
    indexPrefix: 'plain',
  })

  it('leaves out stems only', () => {
    expect(exercise.cases.length).toBeGreaterThan(55)
    expect(exercise.leftOut.map(({ name }) => name)).toEqual(Object.keys(leaveOut))
  })
  tellLeftOut(exercise)
})

describe('through the official client', () => {
  const exercise = exerciseSearchEngine(
    () => new Meilisearch(new OfficialApi(url, key), { prefix, taskMs, tombstonesMs }),
    { test, leaveOut, indexPrefix: 'official' },
  )
  tellLeftOut(exercise)
})
