/** What every search engine must do with indexes, generations and its own life. */
import assert from 'node:assert/strict'
import { HermodError } from '../errors.ts'
import type { Generation } from '../sinks/search/index.ts'
import type { SearchCase } from './search-documents.ts'
import { definition, fill, samples, upsertOf } from './search-documents.ts'

const states = (list: readonly Generation[]) => list.map(({ state }) => state)
const coded = (code: string) => (error: unknown) => error instanceof HermodError && error.code === code

const changed = {
  fields: { ...definition.fields, owner: { kind: 'keyword', facet: true } },
} as const

export const searchIndexCases: readonly SearchCase[] = [
  {
    name: 'ensuring an index twice changes nothing',
    async run({ engine, index }) {
      const first = await engine.ensureIndex(index, definition)
      const second = await engine.ensureIndex(index, definition)
      assert.deepEqual([first.state, second.state], ['created', 'unchanged'])
      assert.equal(first.generation, second.generation)
    },
  },
  {
    name: 'many may ensure an index at the same time',
    async run({ engine, index }) {
      const ensured = await Promise.all(Array.from({ length: 6 }, () => engine.ensureIndex(index, definition)))
      assert.equal(new Set(ensured.map(({ generation }) => generation)).size, 1)
      assert.equal((await engine.generations(index)).length, 1)
    },
  },
  {
    name: 'another declaration asks for a rebuild, and the index goes on',
    async run(stage) {
      const { engine, index } = stage
      await fill(stage)
      assert.equal((await engine.ensureIndex(index, changed)).state, 'rebuild-needed')
      assert.equal((await engine.search(index, { query: 'budget' })).total, 2)
    },
  },
  {
    name: 'a declaration that makes no sense is refused',
    async run({ engine, index }) {
      for (const fields of [
        ...[{}, { 'a b': { kind: 'text' } }, { a: { kind: 'txet' } }, { a: { kind: 'text', wieght: 1 } }],
        ...[{ a: { kind: 'text', weight: 9 } }, { a: { kind: 'number', facet: true } }, { a: null }],
      ]) {
        await assert.rejects(
          async () => engine.ensureIndex(index, { fields } as never),
          (error) => error instanceof HermodError && error.code.startsWith('HMD_OPTION_'),
          JSON.stringify(fields),
        )
      }
    },
  },
  {
    name: 'reading an index that is not there says so',
    async run({ engine, index }) {
      await engine.ensureIndex(`${index}_other`, definition)
      const missing = coded('HMD_SEARCH_INDEX_MISSING')
      await assert.rejects(engine.search(index), missing)
      await assert.rejects(engine.get(index, 'a'), missing)
      await assert.rejects(engine.count(index), missing)
      assert.deepEqual(await engine.generations(index), [])
    },
  },
  {
    name: 'a document that is not there is undefined',
    async run(stage) {
      await fill(stage)
      assert.equal(await stage.engine.get(stage.index, 'nobody'), undefined)
      assert.equal(await stage.engine.count(stage.index), samples.length)
    },
  },
  {
    name: 'a generation in the making is not seen, and hears every write',
    async run(stage) {
      const { engine, index, settle } = stage
      await fill(stage)
      const made = await engine.createGeneration(index, changed)
      assert.deepEqual(states(await engine.generations(index)), ['live', 'building'])
      await engine.upsert(index, [upsertOf({ id: 'new', title: 'Brand new' }, 9)])
      await engine.delete(index, [{ id: 'memo-1', version: 10n }])
      await settle()
      assert.equal((await engine.search(index, { query: 'budget' })).total, 2)
      assert.equal(await engine.count(index), 5)
      assert.equal(await engine.count(index, { generation: made.id }), 1)
    },
  },
  {
    name: 'what is loaded into a generation never overtakes what it heard',
    async run(stage) {
      const { engine, index, settle } = stage
      await fill(stage)
      const { id: generation } = await engine.createGeneration(index, changed)
      await engine.upsert(index, [upsertOf({ id: 'rfc-51', title: 'Newer' }, 9)])
      await engine.delete(index, [{ id: 'prd-7', version: 10n }])
      const loaded = samples.map((sample) => upsertOf(sample, 5))
      await engine.upsert(index, loaded, { generation })
      await settle()
      assert.equal((await engine.get(index, 'rfc-51', { generation }))?.document.title, 'Newer')
      assert.equal(await engine.get(index, 'prd-7', { generation }), undefined)
      assert.equal(await engine.count(index, { generation }), 4)
    },
  },
  {
    name: 'a swap is seen at once, and a roll-back finds nothing missing',
    async run(stage) {
      const { engine, index, settle } = stage
      await fill(stage)
      const { id: generation } = await engine.createGeneration(index, changed)
      await engine.upsert(index, [upsertOf({ id: 'one', title: 'Only one', owner: 'anna' }, 9)], {
        generation,
      })
      await settle()
      assert.equal((await engine.swapGeneration(index)).id, generation)
      assert.deepEqual(states(await engine.generations(index)), ['retired', 'live'])
      const { total, facets } = await engine.search(index, { facets: ['owner'] })
      assert.deepEqual([total, facets.owner], [1, [{ value: 'anna', count: 1 }]])
      await engine.upsert(index, [upsertOf({ id: 'late', title: 'Late' }, 10)])
      await settle()
      await engine.rollBackGeneration(index)
      assert.deepEqual(states(await engine.generations(index)), ['live', 'retired'])
      assert.equal(await engine.count(index), 6)
    },
  },
  {
    name: 'a reader never sees an index that is empty or gone while generations change',
    async run(stage) {
      const { engine, index, settle } = stage
      await fill(stage)
      let ended = false
      const reading = (async () => {
        const totals = new Set<number>()
        while (!ended) totals.add((await engine.search(index, { query: 'budget' })).total)
        return totals
      })()
      // If the round fails, that is the error to be told.
      reading.catch(() => {})
      try {
        for (let round = 0; round < 3; round++) {
          const { id: generation } = await engine.createGeneration(index, definition)
          await engine.upsert(
            index,
            samples.map((sample, at) => upsertOf(sample, at + 1)),
            { generation },
          )
          await settle()
          await engine.swapGeneration(index)
          const old = (await engine.generations(index)).filter(({ state }) => state === 'retired')
          for (const { id } of old) await engine.dropGeneration(index, id)
        }
      } finally {
        ended = true
      }
      assert.deepEqual([...(await reading)], [2])
    },
  },
  {
    name: 'steps that a generation is not ready for are refused',
    async run(stage) {
      const { engine, index } = stage
      await fill(stage)
      const refused = coded('HMD_SEARCH_GENERATION')
      await assert.rejects(engine.swapGeneration(index), refused)
      await assert.rejects(engine.rollBackGeneration(index), refused)
      const [live] = await engine.generations(index)
      await assert.rejects(engine.dropGeneration(index, live?.id as string), refused)
      const made = await engine.createGeneration(index, definition)
      await assert.rejects(engine.createGeneration(index, definition), refused)
      await engine.dropGeneration(index, made.id)
      await engine.dropGeneration(index, made.id)
      assert.deepEqual(states(await engine.generations(index)), ['live'])
    },
  },
  {
    name: 'a search that is told to stop ends',
    async run(stage) {
      await fill(stage)
      const signal = AbortSignal.abort()
      await assert.rejects(async () => stage.engine.search(stage.index, { signal }))
    },
  },
  {
    name: 'probe() says which version answers',
    async run({ engine, index }) {
      await engine.ensureIndex(index, definition)
      assert.match((await engine.probe()).version, /\d/)
    },
  },
  {
    name: 'close() twice is harmless',
    async run({ engine }) {
      await engine.close()
      await engine.close()
    },
  },
]
