// Every row of Typesense's error table, against the double: what an answer, or none, means for the
// documents that were sent. Nothing counts as written that was not named, and no outcome tells the key.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { searchSink, type TextField, type Upsert } from '../../src/sinks/search/index.ts'
import { ImportPace } from '../../src/sinks/search/typesense/import.ts'
import { typesense } from '../../src/sinks/search/typesense.ts'
import type { Outcome } from '../../src/sinks/sink.ts'
import { exerciseSink } from '../../src/testing/index.ts'
import { type DoubleRequest, type Fault, TypesenseDouble } from '../support/typesense/double.ts'

const double = new TypesenseDouble()
const title: TextField = { kind: 'text' }
const fields = {
  title,
  pages: { kind: 'number' },
  status: { kind: 'keyword', facet: true },
} as const
const open: { close(): Promise<void> }[] = []

function engine(options: { apiKey?: string; timeoutMs?: number } = {}) {
  const made = typesense({ url: double.url, apiKey: double.apiKey, ...options })
  open.push(made)
  return made
}

beforeAll(async () => {
  await double.open()
  await engine().ensureIndex('faults', { fields })
})
afterEach(async () => {
  double.faults.length = 0
  double.lagging = false
  double.outOf = undefined
  for (const one of open.splice(0)) await one.close()
})
afterAll(() => double.close())

const importing = ({ path }: DoubleRequest) => path.endsWith('/import')
let version = 0n
const document = (id: string, text = 'x'): Upsert => {
  return { id, version: ++version, json: JSON.stringify({ title: text }) }
}

async function write(ids: readonly string[], fault?: Omit<Fault, 'when'>): Promise<Outcome[]> {
  if (fault !== undefined) double.faults.push({ when: importing, ...fault })
  const documents = ids.map((id) => document(id))
  const outcomes = await engine({ timeoutMs: 300 }).upsert('faults', documents)
  expect(JSON.stringify(outcomes)).not.toContain(double.apiKey)
  return [...outcomes]
}

describe('the whole call', () => {
  const busy = 'Rejecting write: running out of resource type: OUT_OF_DISK'
  const rows: [string, Omit<Fault, 'when'>, Partial<Outcome>][] = [
    ['503', { status: 503 }, { outcome: 'unavailable', afterMs: 10_000 }],
    [
      '503 with Retry-After',
      { status: 503, headers: { 'retry-after': '7' } },
      { outcome: 'unavailable', afterMs: 7_000 },
    ],
    [
      '429 with Retry-After',
      { status: 429, headers: { 'retry-after': '90' } },
      { outcome: 'unavailable', afterMs: 90_000, status: 429 },
    ],
    ['500', { status: 500 }, { outcome: 'unavailable', status: 500 }],
    ['504 of a balancer', { status: 504, text: '<html>' }, { outcome: 'unavailable' }],
    ['a full disk', { status: 422, message: busy }, { outcome: 'unavailable', afterMs: 10_000 }],
    ['maintenance', { status: 422, message: 'Skipping writes.' }, { outcome: 'unavailable', afterMs: 10_000 }],
    [
      'a change of the collection',
      { status: 422, message: 'Another collection update operation is in progress.' },
      { outcome: 'unavailable', afterMs: 10_000 },
    ],
    ['401', { status: 401 }, { outcome: 'misconfigured', message: /apiKey/ as never }],
    ['a redirect', { status: 302 }, { outcome: 'misconfigured' }],
    ['a page instead of lines', { status: 200, text: '<html>hello' }, { outcome: 'unavailable' }],
    ['nothing instead of lines', { status: 200, text: '' }, { outcome: 'unavailable' }],
    ['no answer in time', { silence: true }, { outcome: 'unavailable' }],
    ['an answer that is cut', { cut: true }, { outcome: 'unavailable' }],
  ]
  it.each(rows)('%s', async (_, fault, expected) => {
    const { message, ...rest } = expected
    for (const outcome of await write(['a', 'b'], fault)) {
      expect(outcome).toMatchObject(rest)
      if (message !== undefined) expect(outcome.message).toMatch(message)
    }
  })

  it('what was accepted before the answer was lost is there, and sent again harmlessly', async () => {
    const documents = [document('lost'), document('lost2')]
    double.faults.push({ when: importing, cut: true })
    const to = engine()
    const first = await to.upsert('faults', documents)
    expect(first.map(({ outcome }) => outcome)).toEqual(['unavailable', 'unavailable'])
    const again = await to.upsert('faults', documents)
    expect(again.map(({ outcome }) => outcome)).toEqual(['superseded', 'superseded'])
    expect((await to.get('faults', 'lost'))?.version).toBe(documents[0]?.version)
  })

  it('a lagging node holds writes, searches and probes', async () => {
    double.lagging = true
    const [outcome] = await write(['a'])
    expect(outcome).toMatchObject({ outcome: 'unavailable', status: 503 })
    await expect(engine().search('faults')).rejects.toThrow('Not Ready or Lagging')
    await expect(engine().probe()).rejects.toMatchObject({ status: 503 })
  })

  it('a node out of memory says so when probed', async () => {
    double.outOf = 'OUT_OF_MEMORY'
    await expect(engine().probe()).rejects.toThrow('OUT_OF_MEMORY')
    expect((await write(['a']))[0]).toMatchObject({ outcome: 'unavailable' })
    expect(await engine().delete('faults', [{ id: 'a', version: ++version }])).toMatchObject([
      { outcome: 'unavailable' },
    ])
  })

  it('nothing that listens is unavailable', async () => {
    await double.close()
    const outcomes = await write(['a', 'b'])
    await double.open()
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['unavailable', 'unavailable'])
  })

  it('a wrong key is misconfigured, in a sentence', async () => {
    const to = engine({ apiKey: 'another-secret-key' })
    const [outcome] = await to.upsert('faults', [document('a')])
    expect(outcome).toMatchObject({ outcome: 'misconfigured', status: 401 })
    expect(outcome?.message).toMatch(/key.*Check apiKey/)
    expect(JSON.stringify(outcome)).not.toContain('another-secret-key')
    await expect(to.probe()).rejects.toMatchObject({ status: 401 })
  })
})

describe('single documents', () => {
  const names = (outcomes: readonly Outcome[]) => outcomes.map(({ outcome }) => outcome)

  it('a line that failed is rejected, without what was in it', async () => {
    const outcomes = await write(['r1', 'r2', 'r3'], {
      refuseEverySecond: 'Field `pages` must be a float, not "secret words".',
    })
    expect(names(outcomes)).toEqual(['delivered', 'rejected', 'delivered'])
    expect(outcomes[1]?.message).toMatch(/Field `pages` must be a float/)
    expect(JSON.stringify(outcomes)).not.toContain('secret words')
  })

  it('a line that says the server is out of resources holds the destination', async () => {
    const refuseEverySecond = 'Rejecting write: running out of resource type: OUT_OF_MEMORY'
    const outcomes = await write(['l1', 'l2'], { refuseEverySecond })
    expect(names(outcomes)).toEqual(['delivered', 'unavailable'])
  })

  it('fewer lines than documents: the named ones are done, the rest is tried again', async () => {
    expect(names(await write(['n1', 'n2', 'n3'], { lines: 2 }))).toEqual(['delivered', 'delivered', 'retry'])
  })

  it('a call refused as a whole is halved until the bad one stands alone', async () => {
    double.faults.push({
      when: (request) => importing(request) && request.body.includes('spoils'),
      status: 400,
      message: 'Bad request',
      times: 100,
    })
    const documents = Array.from({ length: 20 }, (_, at) => {
      return document(`h${at}`, at === 13 ? 'spoils it' : 'fine')
    })
    const outcomes = await engine().upsert('faults', documents)
    expect(names(outcomes)).toEqual(documents.map((_, at) => (at === 13 ? 'rejected' : 'delivered')))
  })

  it('any id works: what a URL or a filter would read otherwise is encoded', async () => {
    const to = engine()
    const ids = ['a/b?c=d', '..', '.', 'x,y]', '`', '~41', 'ünï 東京', '%2F', 'a && id:!=b', '#', '"']
    expect(
      names(
        await to.upsert(
          'faults',
          ids.map((id) => document(id)),
        ),
      ),
    ).toEqual(ids.map(() => 'delivered'))
    for (const id of ids) expect((await to.get('faults', id))?.id).toBe(id)
    const gone = await to.delete(
      'faults',
      ids.map((id) => ({ id, version: ++version })),
    )
    expect(names(gone)).toEqual(ids.map(() => 'delivered'))
    for (const id of ids) expect(await to.get('faults', id)).toBeUndefined()
    const outcomes = await to.upsert('faults', [document('x'.repeat(513)), document('')])
    expect(names(outcomes)).toEqual(['rejected', 'rejected'])
  })

  it('the size of an import follows the time it takes', () => {
    const pace = new ImportPace()
    const sizes = [100, 100, 100, 100, 5_000, 5_000, 900, 1_500].map((ms) => {
      const { size } = pace
      pace.note(size, ms)
      return size
    })
    expect(sizes).toEqual([500, 1_000, 2_000, 4_000, 5_000, 2_500, 1_250, 2_500])
    pace.note(10, 1)
    expect(pace.size).toBe(2_500)
  })

  it('many documents go in several imports, the first of 500', async () => {
    const to = engine()
    await to.ensureIndex('growing', { fields })
    double.requests.length = 0
    const documents = Array.from({ length: 3_000 }, (_, at) => document(`g${at}`))
    const outcomes = await to.upsert('growing', documents)
    expect(outcomes.every(({ outcome }) => outcome === 'delivered')).toBe(true)
    const lines = double.requests.filter(importing).map(({ body }) => body.split('\n').length)
    expect(lines[0]).toBe(500)
    expect(lines.reduce((sum, one) => sum + one)).toBe(3_000)
    expect(await to.count('growing')).toBe(3_000)
    await to.delete(
      'growing',
      documents.slice(0, 1_000).map(({ id }) => ({ id, version: ++version })),
    )
    expect(await to.count('growing')).toBe(2_000)
  })

  it('a document comes back as it was given, whatever Typesense makes of it', async () => {
    const to = engine()
    const given = {
      id: 7,
      hermod_version: 'mine',
      title: ['one', null, 2],
      status: 'Open',
      pages: null,
      other: { deep: [1, { x: null }] },
      big: 1.5e300,
      empty: null,
    }
    const json = JSON.stringify(given, null, 2)
    await to.upsert('faults', [{ id: 'given', version: ++version, json }])
    expect((await to.get('faults', 'given'))?.document).toEqual(given)
    expect((await to.search('faults', { query: 'one two', filters: { status: 'Open' } })).total).toBe(0)
    expect((await to.search('faults', { query: 'one 2', filters: { status: 'Open' } })).total).toBe(1)
  })

  it('numbers are exact, and in order, however large', async () => {
    const to = engine()
    await to.ensureIndex('numbers', { fields })
    const pages = [-1e300, -2.5, -0, 1e-9, 16_777_217, 16_777_218, 9_007_199_254_740_991, 1e300]
    const documents = pages.map((value, at) => {
      return { id: `p${at}`, version: ++version, json: JSON.stringify({ pages: value }) }
    })
    await to.upsert('numbers', documents.toReversed())
    const sorted = await to.search('numbers', { sort: [{ field: 'pages' }] })
    expect(sorted.hits.map(({ document: { pages: value } }) => value)).toEqual(
      pages.map((value) => JSON.parse(JSON.stringify(value))),
    )
    const only = await to.search('numbers', { filters: { pages: { above: 16_777_217 } } })
    expect(only.total).toBe(3)
    await expect(to.scan('numbers', { after: 'p3' })).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
      field: 'after',
    })
    await expect(
      to.search('numbers', { sort: Array.from({ length: 4 }, () => ({ field: 'pages' })) }),
    ).rejects.toMatchObject({ code: 'HMD_OPTION_INVALID' })
  })
})

describe('the options', () => {
  it('are checked, and the key is never told', () => {
    for (const options of [
      { url: 'ftp://x', apiKey: 'k' },
      { url: 'http://x' },
      { url: 'http://x', apiKey: 'k', timeout: 5 },
      { url: 'http://x', apiKey: 'very-secret', timeoutMs: -1 },
    ]) {
      const error = (() => {
        try {
          typesense(options as never)
        } catch (thrown) {
          return thrown as Error & { code: string }
        }
        return undefined
      })()
      expect(error?.code).toMatch(/^HMD_OPTION_/)
      expect(error?.message).not.toContain('very-secret')
    }
  })
})

describe('the suite for sinks', () => {
  exerciseSink(() => searchSink(typesense({ url: double.url, apiKey: double.apiKey }), { index: 'faults' }), {
    test: it,
    event: (at) => ({ aggregate: ['document', `x${at}`], payload: { title: `sample ${at}` } }),
    bad: { aggregate: ['document', 'bad'], payload: { pages: 'hermod-sample-payload' } },
    oversize: { aggregate: ['document', 'x'.repeat(600)], payload: { title: 'long id' } },
    accepted: async () => {
      const { documents } = await engine().scan('faults', { limit: 5_000 })
      return documents.map(({ id }) => id)
    },
    secrets: [double.apiKey],
    down: async () => {
      await double.close()
      return () => double.open()
    },
    hang: () => broken({ silence: true }),
    credentials: () => broken({ status: 401, message: 'Forbidden' }),
    throttle: () => broken({ status: 429, headers: { 'retry-after': '5' } }),
  })

  function broken(fault: Omit<Fault, 'when'>): () => unknown {
    double.faults.push({ when: () => true, times: 1_000_000, ...fault })
    return () => double.faults.splice(0)
  }
})
