/** What every search engine must do with upserts and deletions, however often and in whatever order. */
import assert from 'node:assert/strict'
import {
  type Deletion,
  documentHash,
  type ScannedDocument,
  type ScannedPage,
  type Upsert,
} from '../sinks/search/index.ts'
import type { Outcome } from '../sinks/sink.ts'
import type { SearchCase } from './search-documents.ts'
import { definition, type Stage, samples, upsertOf } from './search-documents.ts'

const names = (outcomes: readonly Outcome[]) => outcomes.map(({ outcome }) => outcome)
const titled = (id: string, title: string, version: number): Upsert => upsertOf({ id, title }, version)
const gone = (id: string, version: number): Deletion => ({ id, version: BigInt(version) })

async function begin({ engine, index }: Stage): Promise<void> {
  await engine.ensureIndex(index, definition)
}

async function titleOf({ engine, index, settle }: Stage, id: string): Promise<unknown> {
  await settle()
  return (await engine.get(index, id))?.document.title
}

const good = (outcomes: readonly Outcome[]) =>
  assert.ok(
    names(outcomes).every((name) => name === 'delivered' || name === 'superseded'),
    names(outcomes).join(', '),
  )

/** An engine may refuse one of them, but not change it unnoticed. */
const strange: readonly Record<string, unknown>[] = [
  {
    title: 'fractions',
    pages: 0.1 + 0.2,
    customFields: { pi: Math.PI, tiny: 1.5e-300, large: 1.7976931348623157e308 },
  },
  { title: 'whole numbers', pages: -0, customFields: { safe: 2 ** 53 - 1, beyond: 2 ** 60, hex: 0xff } },
  { title: 'nothing', summary: null, content: '', tags: [], customFields: {} },
  { title: ['two', 'titles'], status: ['a', 'b'], docNumber: ['RFC-1', 'rfc 2'] },
  { title: 'a half \ud800 pair and \u0001', content: 'line\r\nline\u2028\u0000end' },
  { title: 'vectors', _vectors: { mine: [0.5, 0.25] } },
  { title: 'names', id: 'mine', 'a.b': 1, ünïcode: true, hash: 'x', version: 3, document: { keys: 1 } },
  {
    title: 'times',
    modifiedAt: '2027-01-10T08:00:00.123Z',
    customFields: { deep: { deeper: [[1, [2]], { x: null }] } },
  },
]

export const searchWriteCases: readonly SearchCase[] = [
  {
    name: 'a document is found after it was written',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      assert.deepEqual(names(await engine.upsert(index, [titled('a', 'Hello world', 7)])), ['delivered'])
      await settle()
      const { hits, total } = await engine.search(index, { query: 'world' })
      assert.deepEqual([hits.map(({ id }) => id), total], [['a'], 1])
      assert.equal(hits[0]?.version, 7n)
      assert.deepEqual(hits[0]?.document, { title: 'Hello world' })
    },
  },
  {
    name: 'a batch answers one outcome per document, in the order given',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      await engine.upsert(index, [titled('b', 'newer', 9)])
      const batch = [titled('c', 'c', 3), titled('b', 'older', 2), titled('a', 'a', 1)]
      const outcomes = names(await engine.upsert(index, batch))
      assert.equal(outcomes.length, 3)
      assert.deepEqual([outcomes[0], outcomes[2]], ['delivered', 'delivered'])
      assert.equal(await titleOf(stage, 'b'), 'newer')
    },
  },
  {
    name: 'an empty batch is harmless',
    async run(stage) {
      await begin(stage)
      assert.deepEqual(await stage.engine.upsert(stage.index, []), [])
      assert.deepEqual(await stage.engine.delete(stage.index, []), [])
    },
  },
  {
    name: 'writing the same again succeeds and changes nothing',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      const one = titled('a', 'same', 5)
      good(await engine.upsert(index, [one]))
      good(await engine.upsert(index, [one]))
      assert.equal(await titleOf(stage, 'a'), 'same')
    },
  },
  {
    name: 'an older version never wins',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      await engine.upsert(index, [titled('a', 'new', 10)])
      good(await engine.upsert(index, [titled('a', 'old', 9)]))
      assert.equal(await titleOf(stage, 'a'), 'new')
      good(await engine.delete(index, [gone('a', 8)]))
      assert.equal(await titleOf(stage, 'a'), 'new')
    },
  },
  {
    name: 'of the same id twice in one call the newest wins',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      const outcomes = await engine.upsert(index, [titled('a', 'new', 2), titled('a', 'old', 1)])
      good(outcomes)
      assert.equal(outcomes.length, 2)
      assert.equal(await titleOf(stage, 'a'), 'new')
    },
  },
  {
    name: 'a deletion takes the document out of everything',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      await engine.upsert(index, [titled('a', 'Hello', 1), titled('b', 'Hello', 2)])
      assert.deepEqual(names(await engine.delete(index, [gone('a', 3)])), ['delivered'])
      await settle()
      assert.equal(await engine.get(index, 'a'), undefined)
      assert.equal(await engine.count(index), 1)
      const { hits } = await engine.search(index, { query: 'hello' })
      assert.deepEqual(
        hits.map(({ id }) => id),
        ['b'],
      )
      assert.deepEqual(
        (await engine.scan(index)).documents.map(({ id }) => id),
        ['b'],
      )
    },
  },
  {
    name: 'a late upsert does not bring a deleted document back',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      await engine.upsert(index, [titled('a', 'first', 1)])
      await engine.delete(index, [gone('a', 3)])
      good(await engine.upsert(index, [titled('a', 'late', 2)]))
      assert.equal(await titleOf(stage, 'a'), undefined)
    },
  },
  {
    name: 'a deletion that comes before its upsert holds',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      good(await engine.delete(index, [gone('a', 3)]))
      good(await engine.upsert(index, [titled('a', 'late', 2)]))
      assert.equal(await titleOf(stage, 'a'), undefined)
    },
  },
  {
    name: 'a newer upsert brings a deleted document back',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      await engine.delete(index, [gone('a', 3)])
      good(await engine.upsert(index, [titled('a', 'again', 4)]))
      assert.equal(await titleOf(stage, 'a'), 'again')
    },
  },
  {
    name: 'deleting what is not there succeeds',
    async run(stage) {
      await begin(stage)
      good(await stage.engine.delete(stage.index, [gone('nobody', 1)]))
    },
  },
  {
    name: 'a bad document is rejected and the others pass',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const bad = upsertOf({ id: 'bad', title: 'x', pages: 'many' }, 2)
      const batch = [titled('a', 'a', 1), bad, titled('b', 'b', 3)]
      const outcomes = await inHalves((part) => engine.upsert(index, part), batch)
      assert.deepEqual(names(outcomes), ['delivered', 'rejected', 'delivered'])
      await settle()
      assert.equal(await engine.count(index), 2)
      assert.ok(!JSON.stringify(outcomes).includes('many'), 'a document appears in an outcome')
    },
  },
  {
    name: 'what is not an object is rejected',
    async run(stage) {
      await begin(stage)
      for (const json of ['null', '[]', '"text"', '{']) {
        const outcomes = await stage.engine.upsert(stage.index, [{ id: 'a', version: 1n, json }])
        assert.deepEqual(names(outcomes), ['rejected'], json)
      }
    },
  },
  {
    name: 'a document of 1 MB is kept whole and found by its beginning',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const words = Array.from({ length: 130_000 }, (_, at) => `w${at.toString(36)}`)
      const content = `needle ${words.join(' ')}`.padEnd(1_000_000, ' x')
      good(await engine.upsert(index, [upsertOf({ id: 'a', title: 'Large', content }, 1)]))
      await settle()
      assert.equal((await engine.search(index, { query: 'needle' })).total, 1)
      assert.equal((await engine.get(index, 'a'))?.document.content, content)
    },
  },
  {
    name: 'strange texts come back as they were',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const title = 'a\u0000b "quoted" \\ \' 🎉 שלום 東京 \u202e <script> %_$1 \ue000'
      const document = { title, tags: ['', '=', 'a=b', '\u001f', 'x'.repeat(3_000)] }
      good(await engine.upsert(index, [upsertOf({ id: 'ß/ü?', ...document }, 1)]))
      await settle()
      assert.deepEqual((await engine.get(index, 'ß/ü?'))?.document, document)
      const found = await engine.search(index, { query: '東京', filters: { tags: 'a=b' } })
      assert.equal(found.total, 1)
      const long = { anyOf: ['x'.repeat(3_000)] }
      assert.equal((await engine.search(index, { filters: { tags: long } })).total, 1)
      const other = { anyOf: [`${'x'.repeat(2_999)}y`] }
      assert.equal((await engine.search(index, { filters: { tags: other } })).total, 0)
    },
  },
  {
    name: 'a scan pages through everything once, with version and hash',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const ids = ['a', 'B', 'ä', '10', '9', '\u{1f389}', '\uffee']
      await engine.upsert(
        index,
        ids.map((id, at) => titled(id, id, at + 1)),
      )
      await settle()
      const seen: ScannedDocument[] = []
      let page: ScannedPage = await engine.scan(index, { limit: 3 })
      seen.push(...page.documents)
      for (let pages = 1; page.next !== undefined; pages++) {
        assert.ok(pages < 10, 'the scan has no end')
        page = await engine.scan(index, { after: page.next, limit: 3 })
        assert.ok(page.documents.length <= 3)
        seen.push(...page.documents)
      }
      assert.deepEqual(seen.map(({ id }) => id).toSorted(), ids.toSorted())
      for (const { id, version, hash } of seen) {
        assert.equal(version, BigInt(ids.indexOf(id) + 1))
        assert.equal(hash, documentHash({ title: id }))
      }
    },
  },
  {
    name: 'the hash does not depend on the order of keys',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const [{ id: _, ...document }] = [samples[0] as (typeof samples)[0] & { id: string }]
      const turned = Object.fromEntries(Object.entries(document).reverse())
      await engine.upsert(index, [
        { id: 'a', version: 1n, json: JSON.stringify(document) },
        { id: 'b', version: 2n, json: JSON.stringify(turned, null, 2) },
      ])
      await settle()
      const [a, b] = (await engine.scan(index)).documents
      assert.equal((await engine.get(index, a?.id ?? ''))?.hash, a?.hash)
      assert.equal(a?.hash, b?.hash)
    },
  },
  {
    name: 'the hash is that of what a search would show, whatever is in the document; a fast one that of what was written',
    async run(stage) {
      await begin(stage)
      const { engine, index, settle } = stage
      const all = [...samples.map(({ id: _, ...sample }) => sample), ...strange]
      const upserts = all.map((one, at) => ({ id: `d${at}`, version: BigInt(at + 1), json: JSON.stringify(one) }))
      // One by one: an engine may refuse a whole call because of one of them.
      const outcomes: Outcome[] = []
      for (const upsert of upserts) outcomes.push(...(await engine.upsert(index, [upsert])))
      await settle()
      const hashes = async (fast: boolean) => {
        const { documents } = await engine.scan(index, { fast })
        return Object.fromEntries(documents.map(({ id, hash }) => [id, hash]))
      }
      const written = all.flatMap((one, at) =>
        outcomes[at]?.outcome === 'delivered' ? [[`d${at}`, one] as const] : [],
      )
      const wanted = (shown: (one: (typeof all)[0]) => object) =>
        Object.fromEntries(written.map(([id, one]) => [id, documentHash(shown(one))]))
      assert.ok(written.length >= samples.length, 'the samples are written')
      const shown = await hashes(false)
      assert.deepEqual(
        shown,
        wanted((one) => engine.givesBack?.(one, definition) ?? one),
      )
      assert.deepEqual(
        await hashes(true),
        wanted((one) => one),
      )
      for (const [id] of written) assert.equal((await engine.get(index, id))?.hash, shown[id])
    },
  },
  {
    name: 'writing to an index that is not there is misconfigured',
    async run({ engine, index }) {
      await engine.ensureIndex(`${index}_other`, definition)
      assert.deepEqual(names(await engine.upsert(index, [titled('a', 'a', 1)])), ['misconfigured'])
      assert.deepEqual(names(await engine.delete(index, [gone('a', 2)])), ['misconfigured'])
    },
  },
  {
    name: 'a write that is told to stop ends and says that nothing is certain',
    async run(stage) {
      await begin(stage)
      const signal = AbortSignal.abort()
      const outcomes = await stage.engine.upsert(stage.index, [titled('a', 'a', 1)], { signal })
      assert.deepEqual(names(outcomes), ['unavailable'])
    },
  },
  {
    name: 'writers of the same documents do not hinder each other',
    async run(stage) {
      await begin(stage)
      const { engine, index } = stage
      const ids = Array.from({ length: 50 }, (_, at) => `d${at}`)
      const write = (round: number) => {
        const order = round % 2 === 0 ? ids : ids.toReversed()
        return engine.upsert(
          index,
          order.map((id) => titled(id, `round ${round}`, round)),
        )
      }
      const outcomes = await Promise.all([1, 2, 3, 4, 5, 6].map(write))
      for (const list of outcomes) good(list)
      for (const id of ids) assert.equal(await titleOf(stage, id), 'round 6')
    },
  },
]

/** Sends again in halves what the engine asks to split, as the outbox does. */
async function inHalves(
  write: (part: readonly Upsert[]) => Promise<readonly Outcome[]>,
  batch: readonly Upsert[],
): Promise<readonly Outcome[]> {
  const outcomes = await write(batch)
  if (batch.length === 1 || names(outcomes).every((name) => name !== 'split')) return outcomes
  const middle = Math.ceil(batch.length / 2)
  const left = await inHalves(write, batch.slice(0, middle))
  return [...left, ...(await inHalves(write, batch.slice(middle)))]
}
