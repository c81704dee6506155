/** What every search engine must find, count, sort, mark and hide. */
import assert from 'node:assert/strict'
import { HermodError } from '../errors.ts'
import { markedHtml, type SearchRequest, type SearchResult } from '../sinks/search/index.ts'
import type { SearchCase } from './search-documents.ts'
import { fill, type Stage, upsertOf } from './search-documents.ts'

const all = ['memo-1', 'prd-7', 'prd-8', 'rfc-51', 'rfc-52']
const idsOf = ({ hits }: SearchResult) => hits.map(({ id }) => id)

async function find({ engine, index }: Stage, request: SearchRequest): Promise<string[]> {
  return idsOf(await engine.search(index, request)).sort()
}

async function refuses(stage: Stage, request: unknown): Promise<void> {
  await assert.rejects(
    async () => stage.engine.search(stage.index, request as SearchRequest),
    (error) => error instanceof HermodError && error.code.startsWith('HMD_OPTION_'),
  )
}

/** Every case begins with the five documents. */
function onSamples(name: string, run: SearchCase['run']): SearchCase {
  return {
    name,
    async run(stage) {
      await fill(stage)
      await run(stage)
    },
  }
}

/** Each query finds exactly these. */
function finds(name: string, expected: Readonly<Record<string, readonly string[]>>): SearchCase {
  return onSamples(name, async (stage) => {
    for (const [query, ids] of Object.entries(expected)) {
      assert.deepEqual(await find(stage, { query }), ids, JSON.stringify(query))
    }
  })
}

const hostile = [
  ...['"', "'", '-', '--', '- -', '"-"', '!!', '&|!<->', ':*', "a' & b", '(', ')', '\\', '*', '%_'],
  ...['\0', 'a\0b', '🎉', '\ud800', 'שלום עולם', '\u202egnirts', '-"', '"unclosed', 'OR', 'a OR', '""'],
  ...['x'.repeat(100_000), '" '.repeat(50_000), 'a '.repeat(50_000), `'; drop table x; --`, '<b>'],
  ...['é'.normalize('NFD'), '١٢٣', 'ﬁ', '\n\t', 'to_tsquery($1)', '{"$gt":""}', '-'.repeat(1_000)],
]

/** Each stands between two words, and around one. */
const signs = [...'$<=>^|~°€£¥©™→+&*/#@', '\u00a0', '\u202f', '\u200b']

export const searchQueryCases: readonly SearchCase[] = [
  finds('words are found in every text field, whatever their ending', {
    budget: ['rfc-51', 'rfc-52'],
    'approving ': ['rfc-51'],
    'team planning ': ['rfc-51'],
    'budget zebra ': [],
  }),
  onSamples('a word in the title counts more than one in the text', async ({ engine, index }) => {
    const { hits } = await engine.search(index, { query: 'review' })
    assert.equal(hits[0]?.id, 'rfc-51')
    assert.ok((hits[0]?.score ?? 0) > (hits[1]?.score ?? 0))
  }),
  finds('the last word is found while it is typed', {
    bud: ['rfc-51', 'rfc-52'],
    'budget rev': ['rfc-51', 'rfc-52'],
    rele: ['prd-7', 'prd-8'],
    reviewi: ['rfc-51', 'rfc-52'],
  }),
  onSamples('a single letter finds the titles it begins', async (stage) => {
    const ids = await find(stage, { query: 'b' })
    assert.ok(ids.includes('rfc-51') && ids.includes('prd-8'), ids.join(', '))
  }),
  finds('accents and case do not matter', {
    cafe: ['rfc-52'],
    CAFÉ: ['rfc-52'],
    'cafe\u0301': ['rfc-52'],
  }),
  finds('typing errors are forgiven, swapped letters too', {
    reveiw: ['rfc-51', 'rfc-52'],
    bugdet: ['rfc-51', 'rfc-52'],
    'bugdet reveiw': ['rfc-51', 'rfc-52'],
    checklst: ['prd-7'],
    kitchenn: ['memo-1', 'rfc-52'],
    'relaese ': ['prd-7', 'prd-8'],
  }),
  onSamples('what was typed rightly stands before what is like it', async (stage) => {
    const { engine, index, settle } = stage
    await engine.upsert(index, [upsertOf({ id: 'x', title: 'Bugdet', content: 'Bugdet' }, 9)])
    await settle()
    const { hits } = await engine.search(index, { query: 'bugdet' })
    assert.equal(hits[0]?.id, 'x')
  }),
  finds('identifiers are found however they are written', {
    'RFC-051': ['rfc-51'],
    'rfc 051': ['rfc-51'],
    rfc051: ['rfc-51'],
    'rfc_051 ': ['rfc-51'],
    'RFC 51': ['rfc-51'],
    'rfc-05': ['rfc-51', 'rfc-52'],
    rfc: ['rfc-51', 'rfc-52'],
  }),
  {
    name: 'a word is found whatever sign or invisible space touches it',
    async run(stage) {
      await fill(stage)
      const { engine, index, settle } = stage
      const made = signs.map((sign, at) => {
        const content = `<p>Marsupial</p> marmalade${sign}nightjar ${sign}oxbow${sign}`
        return upsertOf({ id: `sign-${at}`, title: 'Signs', content }, 10 + at)
      })
      await engine.upsert(index, made)
      await settle()
      const ids = made.map(({ id }) => id).sort()
      for (const query of ['marsupial ', 'marmalade ', 'nightjar ', 'oxbow ']) {
        assert.deepEqual(await find(stage, { query, limit: 100 }), ids, query)
      }
    },
  },
  finds('a phrase is found as it stands', {
    '"yearly budget"': ['rfc-51'],
    '"budget yearly"': [],
    '"notes, tag" everybody': ['prd-7'],
  }),
  finds('a word can be excluded', {
    'budget -cafe': ['rfc-51'],
    'budget -"yearly budget"': ['rfc-52'],
    'release -rollback': ['prd-8'],
    '-budget': ['memo-1', 'prd-7', 'prd-8'],
  }),
  finds('nothing typed, or nothing but stop words, finds everything', {
    '': all,
    '  ': all,
    'the ': all,
    'and the of ': all,
    '!?': all,
  }),
  onSamples('no query is an error, and none takes long', async (stage) => {
    for (const query of hostile) {
      const startedAt = performance.now()
      await find(stage, { query, facets: ['status'], highlights: ['title', 'content'] })
      const ms = performance.now() - startedAt
      assert.ok(ms < 5_000, `${JSON.stringify(query.slice(0, 20))} took ${ms} ms`)
    }
  }),
  onSamples('filters: equal, any of, none of, all of them together', async (stage) => {
    const cases: [SearchRequest['filters'] & object, string[]][] = [
      [{ status: 'WIP' }, ['memo-1', 'prd-8']],
      [{ status: { anyOf: ['WIP', 'In-Review'] } }, ['memo-1', 'prd-8', 'rfc-51']],
      [{ status: { noneOf: ['WIP', 'Approved'] } }, ['rfc-51']],
      [{ tags: { noneOf: ['yearly'] } }, ['memo-1', 'prd-8', 'rfc-52']],
      [{ tags: 'yearly', product: 'Ledger', status: 'Approved' }, ['prd-7']],
      [{ docNumber: 'RFC-051' }, ['rfc-51']],
      [{ status: 'wip' }, []],
      [{ status: "' or true --" }, []],
    ]
    for (const [filters, ids] of cases) {
      assert.deepEqual(await find(stage, { filters }), ids, JSON.stringify(filters))
    }
  }),
  onSamples('filters: ranges of numbers and dates', async (stage) => {
    const cases: [SearchRequest['filters'] & object, string[]][] = [
      [{ pages: { from: 12 } }, ['prd-7', 'prd-8', 'rfc-51']],
      [{ pages: { above: 12 } }, ['prd-7', 'prd-8']],
      [{ pages: { from: 3, below: 40 } }, ['rfc-51', 'rfc-52']],
      [{ pages: 3 }, ['rfc-52']],
      [{ modifiedAt: { from: '2027-02-01T00:00:00Z' } }, ['prd-7', 'prd-8']],
      [{ modifiedAt: { to: new Date('2027-01-20T08:00:00Z') } }, ['rfc-51', 'rfc-52']],
      [{ modifiedAt: { above: Date.parse('2027-02-01T08:00:00Z') } }, ['prd-8']],
      [{ modifiedAt: { from: '2027-01-20T09:00:00+01:00', to: '2027-01-20T08:00:00Z' } }, ['rfc-52']],
    ]
    for (const [filters, ids] of cases) {
      assert.deepEqual(await find(stage, { filters }), ids, JSON.stringify(filters))
    }
  }),
  onSamples('a filter without values finds nothing', async (stage) => {
    const { engine, index } = stage
    const result = await engine.search(index, {
      filters: { people: { anyOf: [] } },
      facets: ['status'],
      query: 'budget',
    })
    assert.deepEqual([result.hits, result.total, result.facets.status], [[], 0, []])
  }),
  onSamples('an access filter hides documents from hits, total and facets', async (stage) => {
    const { engine, index } = stage
    const filters = { people: { anyOf: ['ben', 'dora'] } }
    for (const query of ['', 'release', 'reveiw', '"budget"', 'checklist']) {
      const { hits, total, facets } = await engine.search(index, {
        query,
        filters,
        facets: ['status', 'product'],
      })
      const seen = hits.map(({ id }) => id)
      assert.ok(
        seen.every((id) => id === 'rfc-51' || id === 'prd-8'),
        `${query}: ${seen}`,
      )
      assert.equal(total, seen.length)
      const counted = facets.status?.reduce((sum, { count }) => sum + count, 0)
      assert.equal(counted, total)
    }
  }),
  onSamples('a filter that cannot be applied is refused', async (stage) => {
    for (const filters of [
      ...[{ poeple: 'anna' }, { people: undefined }, { people: null }, { people: {} }],
      ...[{ people: { anyOf: 'anna' } }, { people: { anyOf: [undefined] } }, { title: 'Notes' }],
      ...[{ pages: 'three' }, { pages: {} }, { pages: { from: undefined } }, { status: ['WIP'] }],
      ...[{ people: { anyOf: ['a'], noneOf: ['b'] } }, { modifiedAt: { from: 'yesterday' } }],
      ...[{ pages: { least: 3 } }, { customFields: 'x' }, 'status', ['status']],
    ]) {
      await refuses(stage, { filters })
    }
  }),
  onSamples('a request that makes no sense is refused', async (stage) => {
    for (const request of [
      ...[{ facets: ['people'] }, { facets: ['nothing'] }, { sort: [{ field: 'title' }] }],
      ...[{ sort: [{ field: 'pages', direction: 'up' }] }, { limit: -1 }, { limit: 1_001 }],
      ...[{ offset: 1.5 }, { query: 5 }, { highlights: ['pages'] }, { filter: { status: 'WIP' } }],
    ]) {
      await refuses(stage, request)
    }
  }),
  onSamples('facets count every value', async ({ engine, index }) => {
    const { facets, facetsExact } = await engine.search(index, {
      facets: ['status', 'tags'],
      limit: 0,
    })
    assert.deepEqual(
      facets.status?.toSorted((a, b) => (a.value < b.value ? -1 : 1)),
      [
        { value: 'Approved', count: 2 },
        { value: 'In-Review', count: 1 },
        { value: 'WIP', count: 2 },
      ],
    )
    assert.deepEqual(facets.tags?.[0], { value: 'yearly', count: 2 })
    assert.equal(facetsExact, true)
  }),
  onSamples('a facet ignores its own filter and heeds the others', async ({ engine, index }) => {
    const { facets, total } = await engine.search(index, {
      facets: ['status', 'product'],
      filters: { status: 'WIP', product: 'Ledger' },
    })
    const counts = (name: string) => Object.fromEntries((facets[name] ?? []).map(({ value, count }) => [value, count]))
    assert.deepEqual(counts('status'), { 'In-Review': 1, Approved: 1, WIP: 1 })
    assert.deepEqual(counts('product'), { Ledger: 1, Canteen: 1 })
    assert.equal(total, 1)
  }),
  onSamples('sorting: both ways, without a value last, ties by id', async ({ engine, index }) => {
    const sorted = async (sort: SearchRequest['sort'] & object, query = '') =>
      idsOf(await engine.search(index, { sort, query }))
    assert.deepEqual(await sorted([{ field: 'pages' }]), [...['rfc-52', 'rfc-51', 'prd-7', 'prd-8', 'memo-1']])
    assert.deepEqual(await sorted([{ field: 'pages', direction: 'descending' }]), [
      ...['prd-7', 'prd-8', 'rfc-51', 'rfc-52', 'memo-1'],
    ])
    const both = [
      { field: 'pages', direction: 'descending' },
      { field: 'modifiedAt', direction: 'descending' },
    ] as const
    assert.deepEqual(await sorted(both), ['prd-8', 'prd-7', 'rfc-51', 'rfc-52', 'memo-1'])
    assert.deepEqual(await sorted([{ field: 'pages' }], 'budget '), ['rfc-52', 'rfc-51'])
  }),
  onSamples('nothing typed shows the newest first', async ({ engine, index }) => {
    const ids = idsOf(await engine.search(index))
    assert.deepEqual(ids, ['memo-1', 'prd-8', 'prd-7', 'rfc-52', 'rfc-51'])
  }),
  onSamples('pages are disjoint and complete', async (stage) => {
    const { engine, index, settle } = stage
    const many = Array.from({ length: 45 }, (_, at) => ({ id: `many-${at}`, title: 'Same words' }))
    await engine.upsert(
      index,
      many.map((one, at) => upsertOf(one, at + 100)),
    )
    await settle()
    const seen: string[] = []
    for (let offset = 0; offset < 45; offset += 10) {
      const page = await engine.search(index, { query: 'same words', offset, limit: 10 })
      assert.equal(page.total, 45)
      seen.push(...idsOf(page))
    }
    assert.deepEqual(seen.toSorted(), many.map(({ id }) => id).toSorted())
    const beyond = await engine.search(index, { query: 'same words', offset: 60 })
    assert.deepEqual([beyond.hits, beyond.total], [[], 45])
  }),
  onSamples('the total is counted up to a bound', async ({ engine, index }) => {
    const bounded = await engine.search(index, { countMax: 2, facets: ['status'] })
    assert.deepEqual([bounded.total, bounded.totalExact], [2, false])
    assert.equal(bounded.facetsExact, false)
    const enough = await engine.search(index, { countMax: 5 })
    assert.deepEqual([enough.total, enough.totalExact], [5, true])
  }),
  onSamples('highlights mark what was found', async ({ engine, index }) => {
    const { hits } = await engine.search(index, {
      query: 'budget reveiw',
      highlights: ['title', 'summary', 'docNumber'],
    })
    const hit = hits.find(({ id }) => id === 'rfc-51')
    assert.equal(markedHtml(hit?.highlights.title ?? []), '<mark>Budget</mark> <mark>review</mark>')
    assert.equal(markedHtml(hit?.highlights.summary ?? []), 'How the yearly <mark>budget</mark> is approved')
    const numbered = await engine.search(index, { query: 'rfc051', highlights: ['docNumber'] })
    assert.equal(markedHtml(numbered.hits[0]?.highlights.docNumber ?? []), '<mark>RFC-051</mark>')
  }),
  onSamples('highlights are text: nothing in a document passes for markup', async (stage) => {
    const { engine, index, settle } = stage
    const title = '<mark>x</mark> <em>evil</em> \ue000script\ue001 "&amp;"'
    await engine.upsert(index, [upsertOf({ id: 'evil', title }, 9)])
    await settle()
    const { hits } = await engine.search(index, { query: 'evil', highlights: ['title'] })
    const parts = hits[0]?.highlights.title ?? []
    assert.deepEqual(
      parts.filter(({ marked }) => marked),
      [{ text: 'evil', marked: true }],
    )
    const html = markedHtml(parts)
    assert.ok(!html.replaceAll('<mark>evil</mark>', '').includes('<'), html)
  }),
  onSamples('a long text is shown around what was found', async (stage) => {
    const { engine, index, settle } = stage
    const filler = 'lorem ipsum dolor sit amet '.repeat(200)
    const content = `${filler}the needle is here ${filler}`
    await engine.upsert(index, [upsertOf({ id: 'long', title: 'Long', content }, 9)])
    await settle()
    const { hits } = await engine.search(index, { query: 'needle', highlights: ['content'] })
    const parts = hits[0]?.highlights.content ?? []
    const shown = parts.map(({ text }) => text).join('')
    assert.ok(shown.length < 1_000 && shown.includes('the needle is here'), shown)
    assert.ok(parts.some(({ text, marked }) => marked && text === 'needle'))
  }),
  onSamples('a field that is not displayed stays inside', async ({ engine, index }) => {
    const { hits } = await engine.search(index, { filters: { people: 'anna' } })
    assert.equal(hits.length, 2)
    for (const { document } of hits) assert.ok(!('people' in document))
    assert.ok(!('people' in ((await engine.get(index, 'rfc-51'))?.document ?? {})))
    const { document } = hits.find(({ id }) => id === 'rfc-51') ?? {}
    assert.deepEqual(document?.customFields, { colour: 'red', depth: [1, 2] })
  }),
]
