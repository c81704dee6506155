// What is particular to OpenSearch, on a real node: the text that is stored, the aliases, two who do
// the same at once, and words of other scripts.

import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { opensearch } from '../../src/sinks/search/opensearch.ts'

const url = process.env.HERMOD_TEST_OPENSEARCH ?? ''
const prefix = `details_${Date.now().toString(36)}`
const definition = { fields: { title: { kind: 'text' }, people: { kind: 'keyword' } } } as const

afterAll(async () => {
  if (url !== '') await fetch(`${url}/${prefix}*`, { method: 'DELETE' })
})

function engine() {
  const made = opensearch({ url, replicas: 0 })
  onTestFinished(() => made.close())
  return made
}

let indexes = 0
const nextIndex = () => `${prefix}_${++indexes}`
const titled = (id: string, title: string, version: bigint) => {
  return { id, version, json: JSON.stringify({ title }) }
}

if (url === '') it.skip('OpenSearch needs HERMOD_TEST_OPENSEARCH, the URL of a node')
else
  describe('OpenSearch', () => {
    it('keeps the text of a document as it was given, and positions of any size', async () => {
      const one = engine()
      const index = nextIndex()
      await one.ensureIndex(index, definition)
      const json = '{ "z": 1.10,\n "a": 12345678901234567890, "title": "x" }'
      const version = 9_223_372_036_854_775_000n
      await one.upsert(index, [{ id: 'a', version, json }])
      await one.upsert(index, [{ id: 'b', version: 1n, json: ' { } ' }])
      const answer = await fetch(`${url}/${index}/_source/a`)
      expect(await answer.text()).toContain(' "z": 1.10,  "a": 12345678901234567890, "title": "x" }')
      expect((await one.get(index, 'a'))?.version).toBe(version)
      expect(await one.get(index, 'b')).toMatchObject({ version: 1n, document: {} })
      expect((await one.scan(index)).documents.map((d) => d.version)).toEqual([version, 1n])
    })

    it('has one alias for readers, and deletions that are remembered for hours', async () => {
      const one = engine()
      const index = nextIndex()
      await one.ensureIndex(index, definition)
      const state = (await (await fetch(`${url}/${index}`)).json()) as Record<string, never>
      expect(Object.keys(state)).toEqual([`${index}_g1`])
      expect(state[`${index}_g1`]).toMatchObject({
        aliases: { [index]: {}, [`${index}.g1`]: {} },
        settings: { index: { gc_deletes: '21600s' } },
      })
    })

    it('says so when the name belongs to an index already', async () => {
      const index = nextIndex()
      await fetch(`${url}/${index}`, { method: 'PUT' })
      const ensuring = engine().ensureIndex(index, definition)
      await expect(ensuring).rejects.toMatchObject({ code: 'HMD_SEARCH_SETUP' })
    })

    it('of two who swap or make a generation at once, one is refused', async () => {
      const [one, other] = [engine(), engine()]
      const index = nextIndex()
      await one.ensureIndex(index, definition)
      const outcome = async (steps: Promise<unknown>[]) =>
        (await Promise.allSettled(steps)).map(({ status }) => status).sort()
      const making = [one, other].map((e) => e.createGeneration(index, definition))
      expect(await outcome(making)).toEqual(['fulfilled', 'rejected'])
      const swapping = [one, other].map((e) => e.swapGeneration(index))
      expect(await outcome(swapping)).toEqual(['fulfilled', 'rejected'])
      const states = (await one.generations(index)).map(({ state }) => state)
      expect(states).toEqual(['retired', 'live'])
    })

    it('writes of another process reach a new generation after generationsMs at most', async () => {
      const [one, other] = [engine(), engine()]
      const index = nextIndex()
      await one.ensureIndex(index, definition)
      await other.upsert(index, [titled('a', 'a', 1n)])
      const { id: generation } = await one.createGeneration(index, definition)
      const from = performance.now()
      let version = 2n
      await eventually(async () => {
        await other.upsert(index, [titled('b', 'b', version++)])
        expect(await one.get(index, 'b', { generation })).toBeDefined()
      })
      expect(performance.now() - from).toBeLessThan(one.generationsMs + 500)
    })

    it('a field with too long a value is rejected, not silently left out of filters', async () => {
      const one = engine()
      const index = nextIndex()
      await one.ensureIndex(index, definition)
      const json = JSON.stringify({ title: 'x', people: 'x'.repeat(40_000) })
      const outcomes = await one.upsert(index, [{ id: 'a', version: 1n, json }])
      expect(outcomes).toMatchObject([{ outcome: 'rejected' }])
    })

    it.each([
      ['Ἀθῆναι', 'αθηναι'],
      ['Йогурт', 'иогурт'],
      ['Straße', 'strasse'],
      ['Łódź', 'lodz'],
      ['ﬁnal', 'final'],
      ['カタカナ', 'カタ'],
      ['서울', '서울'],
    ])('%s is found as %s', async (title, query) => {
      const one = engine()
      const index = `${prefix}_words`
      await one.ensureIndex(index, { ...definition, language: 'simple' })
      const id = Buffer.from(title).toString('hex')
      await one.upsert(index, [titled(id, title, 1n)])
      await one.count(index)
      const { hits } = await one.search(index, { query, highlights: ['title'] })
      expect(hits[0]?.id).toBe(id)
      expect(hits[0]?.highlights.title?.some(({ marked }) => marked)).toBe(true)
    })
  })
