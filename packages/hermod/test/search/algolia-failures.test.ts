// What Algolia refuses, and what becomes of it: every row of the error table, parked writes, and
// changes of generations that end half-way.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { idKey } from '../../src/sinks/search/algolia/document.ts'
import { tasksPerPoll } from '../../src/sinks/search/algolia/tasks.ts'
import { type AlgoliaOptions, type AlgoliaSearch, algolia } from '../../src/sinks/search/algolia.ts'
import type { Upsert } from '../../src/sinks/search/engine.ts'
import { searchSink } from '../../src/sinks/search/index.ts'
import { isParked, type Outcome } from '../../src/sinks/sink.ts'
import { exerciseSink } from '../../src/testing/index.ts'
import { AlgoliaDouble, type Asked, type Fault } from '../support/algolia/double.ts'

const fields = {
  title: { kind: 'text', weight: 4 },
  pages: { kind: 'number' },
  status: { kind: 'keyword', facet: true },
} as const
const definition = { fields }

let double: AlgoliaDouble
let engine: AlgoliaSearch
let index = ''
let count = 0

beforeAll(async () => {
  double = await AlgoliaDouble.start({ apiKey: 'very-secret-key' })
})
afterAll(() => double.stop())

beforeEach(async () => {
  double.fault = undefined
  double.recordBytesMax = 100_000
  double.recordsMax = Number.POSITIVE_INFINITY
  double.application.disorder = false
  engine = made()
  index = `failing_${++count}`
  await engine.ensureIndex(index, definition)
})

function made(more: Partial<AlgoliaOptions> = {}): AlgoliaSearch {
  const { appId, apiKey, hosts } = double
  return algolia({ appId, apiKey, hosts, knownMs: 0, ...more })
}

const titled = (id: string, title: string, version: number): Upsert => {
  return { id, version: BigInt(version), json: JSON.stringify({ title }) }
}
const three = () => ['a', 'b', 'c'].map((id, at) => titled(id, id, at + 1))
const names = (outcomes: readonly Outcome[]) => outcomes.map(({ outcome }) => outcome)
const isBatch = ({ path }: Asked) => path.endsWith('/batch')
const onBatch = (fault: Fault, host?: number) => (asked: Asked) =>
  isBatch(asked) && (host === undefined || asked.host === host) ? fault : undefined
const titleOf = async (id: string) => (await engine.get(index, id))?.document.title

describe('what is refused', () => {
  it('a record the service finds too big is rejected by its position, and the rest is written', async () => {
    double.recordBytesMax = 800
    const big = titled('big', 'x'.repeat(900), 4)
    const outcomes = await engine.upsert(index, [...three().slice(0, 2), big, titled('c', 'c', 5)])
    expect(names(outcomes)).toEqual(['delivered', 'delivered', 'rejected', 'delivered'])
    expect(outcomes[2]?.message).toContain('too big')
    expect(await engine.count(index)).toBe(3)
  })

  it('a record larger than the plan allows is rejected without a call', async () => {
    const before = double.asked.length
    const outcomes = await made({ recordBytesMax: 1_000 }).upsert(index, [titled('a', 'x'.repeat(900), 1)])
    expect(outcomes[0]).toMatchObject({ outcome: 'rejected', message: /1000.*recordBytesMax/ })
    expect(double.asked.slice(before).filter(isBatch)).toEqual([])
  })

  it.each([
    ['an empty id', { ...titled('', 'a', 1) }, 'the id is empty'],
    ['a long id', { ...titled('x'.repeat(600), 'a', 1) }, '512 bytes'],
    ['half a character', { ...titled('\ud800', 'a', 1) }, 'cannot be stored'],
    ['a command', { id: 'a', version: 1n, json: '{"_operation":"Add"}' }, '_operation'],
    ['no version', { ...titled('a', 'a', -1) }, 'the version'],
  ])('%s is rejected with a sentence', async (_, upsert, says) => {
    const [outcome] = await engine.upsert(index, [upsert])
    expect(outcome).toMatchObject({ outcome: 'rejected', message: expect.stringContaining(says) })
  })

  it('version 0, which a first load has, is a version', async () => {
    expect(names(await engine.upsert(index, [titled('a', 'loaded', 0)]))).toEqual(['delivered'])
    expect(await engine.get(index, 'a')).toMatchObject({ version: 0n })
    await engine.upsert(index, [titled('a', 'newer', 1)])
    await engine.upsert(index, [titled('a', 'loaded', 0)])
    expect(await titleOf('a')).toBe('newer')
  })

  it('any other 400 asks for halves, and rejects what stands alone', async () => {
    double.fault = onBatch({ status: 400, message: 'invalid JSON' })
    expect(names(await engine.upsert(index, three()))).toEqual(['split', 'split', 'split'])
    expect(names(await engine.upsert(index, [titled('a', 'a', 1)]))).toEqual(['rejected'])
  })

  it('a wrong key is misconfigured, in words, and never repeated', async () => {
    const [outcome] = await made({ apiKey: 'another-secret' }).upsert(index, [titled('a', 'a', 1)])
    expect(outcome).toMatchObject({
      outcome: 'misconfigured',
      code: 'ALGOLIA_REFUSED',
      status: 403,
    })
    expect(outcome?.message).toMatch(/Invalid Application-ID.*the key needs search/)
    double.fault = () => ({ status: 403, message: 'no rights for very-secret-key' })
    const said = JSON.stringify(await engine.upsert(index, [titled('a', 'a', 1)]))
    expect(said).toContain('no rights')
    expect(said).not.toContain('very-secret-key')
    await expect(engine.search(index)).rejects.toMatchObject({ code: 'HMD_SEARCH_SETUP' })
    await expect(engine.probe()).rejects.toMatchObject({ code: 'HMD_SEARCH_SETUP' })
  })

  it('a full plan is misconfigured, with what to do', async () => {
    double.recordsMax = double.application.recordCount + 2
    const outcomes = await engine.upsert(index, three())
    expect(new Set(names(outcomes))).toEqual(new Set(['misconfigured']))
    expect(outcomes[0]).toMatchObject({ code: 'ALGOLIA_QUOTA', message: /quota.*larger plan/ })
    double.recordsMax = Number.POSITIVE_INFINITY
    expect(names(await engine.upsert(index, three()))).toEqual(['delivered', 'delivered', 'delivered'])
  })

  it.each([
    ['seconds', () => '7', 7_000],
    ['a date', () => new Date(Date.now() + 30_000).toUTCString(), 30_000],
    ['nonsense', () => 'soon', undefined],
  ])('429 is unavailable for as long as it asks: %s', async (_, retryAfter, afterMs) => {
    double.fault = onBatch({ status: 429, message: 'Too many jobs', retryAfter: retryAfter() })
    const [outcome] = await engine.upsert(index, three())
    expect(outcome).toMatchObject({ outcome: 'unavailable', status: 429 })
    if (afterMs === undefined) expect(outcome?.afterMs).toBeUndefined()
    else expect(Math.abs((outcome?.afterMs ?? 0) - afterMs)).toBeLessThan(2_500)
  })
})

describe('hosts', () => {
  it.each<[string, Fault]>([
    ['503', { status: 503 }],
    ['500', { status: 500 }],
    ['a connection that breaks', { cut: 'before' }],
    ['an answer that is cut', { cut: 'within' }],
    ['a page instead of an answer', { text: '<html>' }],
    ['no answer in time', { hang: true }],
  ])('%s: the next one is asked, once', async (_, fault) => {
    const patient = made({ timeoutMs: 'hang' in fault ? 300 : 10_000 })
    double.fault = onBatch(fault, 0)
    expect(names(await patient.upsert(index, three()))).toEqual([...['delivered', 'delivered', 'delivered']])
    double.fault = onBatch(fault)
    const before = double.asked.length
    const outcomes = await patient.upsert(index, [titled('a', 'newer', 9)])
    expect(names(outcomes)).toEqual(['unavailable'])
    expect(
      double.asked
        .slice(before)
        .filter(isBatch)
        .map(({ host }) => host),
    ).toEqual([0, 1])
    await patient.close()
  })

  it('nobody listens: unavailable, and well again when they do', async () => {
    const open = await double.shut()
    expect(names(await engine.upsert(index, three()))).toEqual(Array(3).fill('unavailable'))
    await open()
    expect(names(await engine.upsert(index, three()))).toEqual(Array(3).fill('delivered'))
  })
})

describe('tasks', () => {
  it('a write is parked, found by another process, and told once it is seen', async () => {
    double.application.hold()
    const sent = await engine.upsert(index, three(), { park: true })
    const handle = isParked(sent) ? sent.parked : ''
    expect(handle).toMatch(/^\[\["failing_\d+-g1",\d+\]\]$/)
    const other = made()
    expect(await other.poll([handle])).toEqual([undefined])
    expect(await engine.count(index)).toBe(0)
    double.application.release()
    expect(await other.poll([handle])).toMatchObject([{ outcome: 'delivered' }])
    expect(await engine.count(index)).toBe(3)
  })

  it('what fails at once is told at once, not parked', async () => {
    const bad = { id: 'bad', version: 9n, json: '{"pages":"many"}' }
    const sent = await engine.upsert(index, [...three(), bad], { park: true })
    expect(isParked(sent) ? [] : names(sent)).toEqual([...Array(3).fill('delivered'), 'rejected'])
    expect(isParked(await engine.delete(index, [{ id: 'a', version: 9n }], { park: true }))).toBe(true)
  })

  it('one poll asks for a bounded number of tasks, and in the end for all of them', async () => {
    const handles: string[] = []
    for (let at = 0; at < 60; at++) {
      const sent = await engine.upsert(index, [titled(`p${at}`, 'x', at + 1)], { park: true })
      if (isParked(sent)) handles.push(sent.parked)
    }
    const open = new Set(handles)
    for (let polls = 0; open.size > 0; polls++) {
      expect(polls).toBeLessThan(4)
      const before = double.asked.length
      const asked = [...open]
      const outcomes = await engine.poll(asked)
      expect(double.asked.length - before).toBeLessThanOrEqual(tasksPerPoll)
      for (const [at, outcome] of outcomes.entries()) {
        if (outcome?.outcome === 'delivered') open.delete(asked[at] as string)
      }
    }
  })

  it('a poll that fails says nothing about the write, except when the key is refused', async () => {
    const sent = await engine.upsert(index, three(), { park: true })
    const handle = isParked(sent) ? sent.parked : ''
    double.fault = () => ({ status: 503 })
    await expect(engine.poll([handle])).rejects.toThrow('503')
    double.fault = () => ({ status: 403, message: 'Invalid Application-ID or API key' })
    expect(await engine.poll([handle])).toMatchObject([{ outcome: 'misconfigured' }])
    double.fault = undefined
    expect(await engine.poll([handle])).toMatchObject([{ outcome: 'delivered' }])
    expect(await engine.poll(['nonsense', '[]', '[[1]]'])).toMatchObject(
      Array(3).fill({ outcome: 'split', code: 'HANDLE_FOREIGN' }),
    )
  })

  it('tasks that are applied in another order change nothing', async () => {
    double.application.disorder = true
    double.application.hold()
    const park = { park: true } as const
    for (const version of [1, 2, 3]) {
      await engine.upsert(index, [titled('a', `v${version}`, version)], park)
    }
    await engine.upsert(index, [titled('gone', 'late', 4)], park)
    await engine.delete(index, [{ id: 'gone', version: 5n }], park)
    double.application.release()
    expect(await titleOf('a')).toBe('v3')
    expect(await titleOf('gone')).toBeUndefined()
  })

  it('deletions are remembered for a while, then removed', async () => {
    const records = () => double.application.indices.get(`${index}-g1`)?.records.size
    await engine.upsert(index, three())
    await engine.delete(index, [{ id: 'a', version: 8n }])
    expect([await engine.count(index), records()]).toEqual([2, 3])
    for (const [id, record] of double.application.index(`${index}-g1`).records) {
      if (id !== 'a') continue
      double.application.index(`${index}-g1`).records.set(id, { ...record, deletedAt: 1_000 })
    }
    await made({ tombstonesMs: 60_000 }).delete(index, [{ id: 'b', version: 9n }])
    expect([await engine.count(index), records()]).toEqual([1, 2])
  })
})

describe('generations', () => {
  const stateOf = async () => (await engine.generations(index)).map(({ state }) => state)
  const indices = () => [...double.application.indices.keys()].filter((name) => name.startsWith(`${index}-`))

  it('what a crash left between two steps is swept away by the next', async () => {
    double.fault = ({ method, path }) =>
      method === 'PUT' && path === `/1/indexes/${index}/settings` ? { cut: 'before' } : undefined
    await expect(engine.createGeneration(index, definition)).rejects.toThrow()
    expect([await stateOf(), indices()]).toEqual([['live'], [`${index}-g1`, `${index}-g2`]])
    double.fault = undefined
    const { id } = await engine.createGeneration(index, definition)
    expect([await stateOf(), indices()]).toEqual([
      ['live', 'building'],
      [`${index}-g1`, `${index}-g${id}`],
    ])
  })

  it("somebody else's indexes are left alone, whatever their names begin with", async () => {
    const foreign = [`${index}-german`, `${index}-g7`, `${index}-g2`]
    for (const name of foreign) await double.application.index(name)
    await expect(engine.createGeneration(index, definition)).rejects.toThrow(/-g2 exists and was not made by Hermod/)
    expect(indices().sort()).toEqual([`${index}-g1`, ...foreign].sort())
    double.application.indices.delete(`${index}-g2`)
    await engine.createGeneration(index, definition)
    expect(indices().sort()).toEqual([`${index}-g1`, ...foreign].sort())
  })

  it('a drop that ends half-way is a drop', async () => {
    const { id } = await engine.createGeneration(index, definition)
    double.fault = ({ method }) => (method === 'DELETE' ? { cut: 'before' } : undefined)
    await expect(engine.dropGeneration(index, id)).rejects.toThrow()
    double.fault = undefined
    expect(await stateOf()).toEqual(['live'])
    expect((await engine.createGeneration(index, definition)).id).toBe('3')
    expect(indices()).toEqual([`${index}-g1`, `${index}-g3`])
  })

  it('a swap of which the answer was lost has happened or has not, never half', async () => {
    await engine.upsert(index, three())
    const { id: generation } = await engine.createGeneration(index, definition)
    await engine.upsert(index, [titled('n', 'new', 4)], { generation })
    double.fault = ({ method }) => (method === 'PUT' ? { cut: 'after' } : undefined)
    await expect(engine.swapGeneration(index)).rejects.toThrow()
    double.fault = undefined
    const other = made()
    expect(await stateOf()).toEqual(['retired', 'live'])
    expect(await other.indexName(index)).toBe(`${index}-g2`)
    expect(await other.count(index)).toBe(1)
    await other.rollBackGeneration(index)
    expect(await other.count(index)).toBe(3)
  })

  it('another process sees a change within the time the engine promises', async () => {
    const slow = made({ knownMs: 60 })
    expect(slow.generationsMs).toBe(60)
    await slow.upsert(index, three())
    const { id: generation } = await engine.createGeneration(index, definition)
    let version = 9
    await eventually(
      async () => {
        await slow.upsert(index, [titled('late', 'late', version++)])
        return (await engine.count(index, { generation })) === 1
      },
      { timeoutMs: 2_000, what: 'a write to the new generation' },
    )
  })
})

describe('searching', () => {
  it('sorts over pages of what was found, and refuses what is too much', async () => {
    const { records } = double.application.index(`${index}-g1`)
    const put = (from: number, to: number) => {
      for (let at = from; at < to; at++) {
        const document = { title: 'many', pages: at }
        const record = {
          version: at + 1,
          deletedAt: 0,
          keys: ['live', idKey(`d${at}`)],
          numbers: { pages: at },
        }
        records.set(`d${at}`, { objectID: `d${at}`, ...record, document })
      }
    }
    const sort = [{ field: 'pages', direction: 'descending' }] as const
    put(0, 2_300)
    const { hits } = await engine.search(index, { query: 'many', sort, offset: 2_298 })
    expect(hits.map(({ id }) => id)).toEqual(['d1', 'd0'])
    put(2_300, 10_001)
    await expect(engine.search(index, { sort })).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
      field: 'sort',
    })
    await expect(engine.search(index, { offset: 9_990 })).rejects.toMatchObject({ field: 'offset' })
    expect((await engine.search(index, { offset: 9_980 })).hits).toHaveLength(20)
  })

  it('this OR that', async () => {
    await engine.upsert(index, [...[titled('a', 'apples', 1), titled('b', 'pears', 2), titled('c', 'plums', 3)]])
    const { hits } = await engine.search(index, { query: 'apples OR pears ' })
    expect(hits.map(({ id }) => id).sort()).toEqual(['a', 'b'])
  })
})

describe('the suite for sinks', () => {
  const broken = (fault: Fault) => () => {
    double.fault = ({ path }) => (path.includes('/task/') ? undefined : fault)
    return () => {
      double.fault = undefined
    }
  }

  const { leftOut } = exerciseSink(() => searchSink(made({ knownMs: 1_000 }), { index }), {
    test: it,
    event: (at) => ({ aggregate: ['document', `x${at}`], payload: { title: `sample ${at}` } }),
    bad: { aggregate: ['document', 'bad'], payload: { pages: 'hermod-sample-payload' } },
    oversize: { aggregate: ['document', 'big'], payload: { title: 'x'.repeat(120_000) } },
    accepted: async () => (await engine.scan(index)).documents.map(({ id }) => id),
    secrets: ['very-secret-key'],
    down: () => double.shut(),
    hang: broken({ hang: true }),
    credentials: broken({ status: 403, message: 'Invalid Application-ID or API key' }),
    throttle: broken({ status: 429, message: 'Too many jobs', retryAfter: '30' }),
  })

  it('leaves nothing out', () => {
    expect(leftOut).toEqual([])
  })
})
