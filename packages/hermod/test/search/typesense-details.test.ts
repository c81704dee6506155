// What only Typesense makes necessary: generations behind an alias, seen by processes that do not know
// of each other; filters that are exact although Typesense compares texts loosely; and the double
// itself, as the vendor's own client meets it.

import { Client, Errors } from 'typesense'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { FieldDefinition, SearchEngine, Upsert } from '../../src/sinks/search/index.ts'
import { typesense } from '../../src/sinks/search/typesense.ts'
import { type DoubleRequest, TypesenseDouble } from '../support/typesense/double.ts'

const double = new TypesenseDouble()
const open: SearchEngine[] = []
const fields: Readonly<Record<string, FieldDefinition>> = {
  title: { kind: 'text', weight: 4 },
  people: { kind: 'keyword' },
  status: { kind: 'keyword', facet: true },
  id: { kind: 'keyword', facet: true },
}
const more: typeof fields = { ...fields, pages: { kind: 'number' } }

/** As if in a process of its own. */
function engine() {
  const made = typesense({ url: double.url, apiKey: double.apiKey })
  open.push(made)
  return made
}

beforeAll(() => double.open())
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(() => double.close())

let indexes = 0
let version = 0n
const newIndex = () => `details_${++indexes}`
const upsert = (id: string, document: object = { title: id }): Upsert => {
  return { id, version: ++version, json: JSON.stringify(document) }
}
const states = async (of: SearchEngine, index: string) =>
  (await of.generations(index)).map(({ id, state }) => `${id} ${state}`)

describe('values as Typesense compares them', () => {
  it('ties are in the order of ids, with all their signs and case', async () => {
    const [one, index] = [engine(), newIndex()]
    await one.ensureIndex(index, { fields: more })
    const ids = ['-z', 'A', 'a', 'a-b', 'a-c', 'a_a', 'ab', 'a~b', 'ä', '_a']
    await one.upsert(
      index,
      ids.map((id) => upsert(id, { title: 'same', pages: 1 })),
    )
    const { hits } = await one.search(index, { sort: [{ field: 'pages' }] })
    const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
    expect(hits.map(({ id }) => id)).toEqual(ids.toSorted(bytes))
  })

  it('long facet values are told apart, whole characters are shown, and what is shown can be filtered by', async () => {
    const [one, index] = [engine(), newIndex()]
    await one.ensureIndex(index, { fields })
    const long = 'ü'.repeat(200)
    await one.upsert(index, [
      upsert('a', { status: `${long}a` }),
      upsert('b', { status: `${long}b` }),
      upsert('c', { status: 'ü'.repeat(127) }),
    ])
    const { facets } = await one.search(index, { facets: ['status'] })
    const values = (facets.status ?? []).map(({ value }) => value)
    expect(values).toHaveLength(3)
    expect(values.join()).not.toContain('\ufffd')
    for (const value of values) {
      expect((await one.search(index, { filters: { status: { anyOf: [value] } } })).total).toBe(1)
    }
    expect((await one.search(index, { filters: { status: { anyOf: [`${long}b`] } } })).hits[0]?.id).toBe('b')
  })
})

describe('generations', () => {
  it('a roll-back goes to and fro, and the next generation is a new one', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    await one.createGeneration(index, { fields })
    await one.swapGeneration(index)
    await one.rollBackGeneration(index)
    expect(await states(one, index)).toEqual(['1 live', '2 retired'])
    await one.createGeneration(index, { fields })
    expect(await states(one, index)).toEqual(['1 live', '2 retired', '3 building'])
    await one.swapGeneration(index)
    expect(await states(one, index)).toEqual(['1 retired', '2 retired', '3 live'])
    await one.rollBackGeneration(index)
    await one.rollBackGeneration(index)
    expect(await states(one, index)).toEqual(['1 retired', '2 retired', '3 live'])
  })

  it('another process goes on when the generation it knows was dropped', async () => {
    const index = newIndex()
    const [one, other] = [engine(), engine()]
    await one.ensureIndex(index, { fields })
    await other.upsert(index, [upsert('a')])
    await one.createGeneration(index, { fields: more })
    await one.upsert(index, [upsert('a'), upsert('b')])
    await one.swapGeneration(index)
    await one.dropGeneration(index, '1')
    expect(await other.count(index)).toBe(2)
    expect(await other.upsert(index, [upsert('c')])).toEqual([{ outcome: 'delivered' }])
    expect((await other.search(index, { query: 'c' })).total).toBe(1)
    const deleted = await other.delete(index, [{ id: 'a', version: ++version }])
    expect(deleted).toEqual([{ outcome: 'delivered' }])
    expect(await one.count(index)).toBe(2)
  })

  it('whoever stopped between making and naming left nothing broken', async () => {
    const index = newIndex()
    const naming = ({ method, path }: DoubleRequest) => method === 'PUT' && path.startsWith('/aliases')
    double.faults.push({ when: naming, status: 503 })
    await expect(engine().ensureIndex(index, { fields })).rejects.toMatchObject({ status: 503 })
    double.faults.length = 0
    await expect(engine().count(index)).rejects.toMatchObject({ code: 'HMD_SEARCH_INDEX_MISSING' })
    expect(await engine().ensureIndex(index, { fields })).toMatchObject({ generation: '1' })
    expect(await states(engine(), index)).toEqual(['1 live'])
  })

  it('an empty index takes another declaration at once, a full one asks for a rebuild', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    expect(await one.ensureIndex(index, { fields: more })).toEqual({
      generation: '2',
      state: 'updated',
    })
    expect(await states(one, index)).toEqual(['2 live'])
    await one.upsert(index, [upsert('a', { title: 'a', people: ['anna'] })])
    expect((await one.ensureIndex(index, { fields })).state).toBe('rebuild-needed')
    const hidden: typeof fields = { ...more, people: { kind: 'keyword', displayed: false } }
    expect((await one.ensureIndex(index, { fields: hidden })).state).toBe('updated')
    expect((await one.get(index, 'a'))?.document).toEqual({ title: 'a' })
  })

  it('the memory of deletions comes back when somebody dropped it', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    const client = officialClient()
    await client.collections(`${index}-deleted`).delete()
    expect(await one.upsert(index, [upsert('a')])).toEqual([{ outcome: 'delivered' }])
    const late = upsert('a')
    await one.delete(index, [{ id: 'a', version: ++version }])
    expect(await one.upsert(index, [late])).toEqual([{ outcome: 'superseded' }])
    expect(double.names()).toContain(`${index}-deleted`)
  })
})

describe('exact although Typesense is not', () => {
  it('filters and facets tell values apart that Typesense takes for the same', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    const people = ['anna', 'Anna', 'an-na', 'a.nna@x', 'anna x', 'änna', '', ' ', 'x'.repeat(5_000)]
    await one.upsert(
      index,
      people.map((person, at) => upsert(`p${at}`, { people: [person], status: person.slice(0, 9) })),
    )
    for (const [at, person] of people.entries()) {
      const { hits } = await one.search(index, { filters: { people: person } })
      expect(hits.map(({ id }) => id)).toEqual([`p${at}`])
    }
    const { facets } = await one.search(index, { facets: ['status'], limit: 0 })
    expect(facets.status?.map(({ value }) => value).toSorted()).toEqual(
      people.map((person) => person.slice(0, 9)).toSorted(),
    )
  })

  it('a field called id is the document’s, not Typesense’s', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    await one.upsert(index, [upsert('mine', { id: 'theirs', title: 'Two ids' })])
    const { hits, facets } = await one.search(index, {
      query: 'ids',
      filters: { id: 'theirs' },
      facets: ['id'],
    })
    expect(hits).toMatchObject([{ id: 'mine', document: { id: 'theirs', title: 'Two ids' } }])
    expect(facets.id).toEqual([{ value: 'theirs', count: 1 }])
  })

  it('stems and phrases both hold', async () => {
    const index = newIndex()
    const one = engine()
    await one.ensureIndex(index, { fields })
    await one.upsert(index, [upsert('s', { title: 'Planning the yearly budgets' })])
    const total = async (query: string) => (await one.search(index, { query })).total
    expect(await total('plans budget ')).toBe(1)
    expect(await total('"yearly budgets"')).toBe(1)
    expect(await total('"budgets yearly"')).toBe(0)
    const { hits } = await one.search(index, { query: 'planned ', highlights: ['title'] })
    expect(hits[0]?.highlights.title?.[0]).toEqual({ text: 'Planning', marked: true })
  })
})

function officialClient(apiKey = double.apiKey) {
  return new Client({
    nodes: [{ url: double.url }],
    apiKey,
    numRetries: 0,
    retryIntervalSeconds: 0.001,
    logLevel: 'silent',
    connectionTimeoutSeconds: 5,
  })
}

describe('the double, as the official client meets it', () => {
  const schema = {
    name: 'companies',
    fields: [
      { name: 'company_name', type: 'string' },
      { name: 'num_employees', type: 'int32' },
      { name: 'country', type: 'string', facet: true },
    ],
  } as const

  it('collections, documents, import with bad lines, search, export and deletion', async () => {
    const client = officialClient()
    await client.collections().create(schema as never)
    const companies = client.collections('companies').documents()
    const stark = { company_name: 'Stark Industries', num_employees: 5_215, country: 'USA' }
    await companies.create({ id: '124', ...stark })
    await expect(companies.create({ id: '124', ...stark })).rejects.toBeInstanceOf(Errors.ObjectAlreadyExists)
    const results = await companies.import(
      [
        { id: '125', company_name: 'Acme', num_employees: 12, country: 'UK' },
        { id: '126', company_name: 'Bad', num_employees: 'many', country: 'UK' },
      ],
      { action: 'upsert', throwOnFail: false },
    )
    expect(results.map(({ success }) => success)).toEqual([true, false])
    expect(results[1]?.error).toBe('Field `num_employees` must be an int32.')
    const found = await companies.search({
      q: 'strak',
      query_by: 'company_name',
      filter_by: 'num_employees:>100',
      sort_by: 'num_employees:desc',
      facet_by: 'country',
    })
    expect(found).toMatchObject({ found: 1, hits: [{ document: { id: '124' } }] })
    expect(found.hits?.[0]?.highlights?.[0]).toMatchObject({
      field: 'company_name',
      snippet: '<mark>Stark</mark> Industries',
    })
    expect((await companies.export()).split('\n')).toHaveLength(2)
    expect(await companies.delete({ filter_by: 'id:[125,999]' })).toEqual({ num_deleted: 1 })
    expect(await client.collections('companies').documents('124').retrieve()).toMatchObject(stark)
    expect((await client.collections('companies').delete()).num_documents).toBe(1)
  })

  it('refuses as the real one does', async () => {
    const client = officialClient()
    await expect(client.collections('nothing').retrieve()).rejects.toBeInstanceOf(Errors.ObjectNotFound)
    await expect(client.aliases('nothing').retrieve()).rejects.toBeInstanceOf(Errors.ObjectNotFound)
    await expect(officialClient('wrong').collections().retrieve()).rejects.toBeInstanceOf(Errors.RequestUnauthorized)
    await expect(
      client.collections().create({ name: 'x', fields: [{ name: 'a', type: 'txet' }] } as never),
    ).rejects.toBeInstanceOf(Errors.RequestMalformed)
    double.lagging = true
    await expect(client.collections().retrieve()).rejects.toThrow('Not Ready or Lagging')
    double.lagging = false
    const { results } = (await client.multiSearch.perform({
      searches: [{ collection: 'nothing', q: '*' }],
    } as never)) as unknown as { results: unknown[] }
    expect(results).toEqual([{ code: 404, error: 'Collection not found' }])
  })
})
