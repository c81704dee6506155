// The double of Algolia under Algolia's own client: what its helpers do with an index must end as they
// expect, and what the double refuses must arrive as the client's errors.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AlgoliaDouble } from '../support/algolia/double.ts'
import { officialClient } from '../support/algolia/official.ts'

let double: AlgoliaDouble
beforeAll(async () => {
  double = await AlgoliaDouble.start()
})
afterAll(() => double.stop())

const options = () => ({ appId: double.appId, apiKey: double.apiKey, hosts: double.hosts })

describe('the double, driven by the official client', () => {
  it('replaces, copies, moves, browses and deletes as its helpers expect', async () => {
    const client = officialClient(options())
    const indexName = 'books'
    const objects = Array.from({ length: 1_500 }, (_, at) => ({ objectID: `${at}`, n: at }))
    await client.saveObjects({ indexName, objects, waitForTasks: true })
    await client.replaceAllObjects({ indexName, objects: objects.slice(0, 1_200), batchSize: 500 })
    const seen: string[] = []
    await client.browseObjects({
      indexName,
      aggregator: ({ hits }) => seen.push(...hits.map(({ objectID }) => objectID)),
    })
    expect(new Set(seen).size).toBe(1_200)
    const copied = await client.operationIndex({
      indexName,
      operationIndexParams: { operation: 'copy', destination: `${indexName}_2` },
    })
    await client.waitForTask({ indexName, taskID: copied.taskID })
    const { taskID } = await client.deleteBy({
      indexName: `${indexName}_2`,
      deleteByParams: { filters: 'n < 200 OR n:1000 TO 1199' },
    })
    await client.waitForTask({ indexName: `${indexName}_2`, taskID })
    expect((await client.searchSingleIndex({ indexName: `${indexName}_2` })).nbHits).toBe(800)
    expect(await client.indexExists({ indexName: 'nobody' })).toBe(false)
  })

  it('refuses as the client expects', async () => {
    const client = officialClient(options())
    const indexName = 'books'
    const big = [{ objectID: 'big', text: 'x'.repeat(200_000) }]
    await expect(client.saveObjects({ indexName, objects: big })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('position 0 objectID=big is too big'),
    })
    const wrong = officialClient({ ...options(), apiKey: 'no' })
    await expect(wrong.getSettings({ indexName })).rejects.toMatchObject({ status: 403 })
    await expect(client.searchSingleIndex({ indexName: 'nobody' })).rejects.toMatchObject({
      status: 404,
      message: 'Index nobody does not exist',
    })
  })
})
