// What Meilisearch refuses, loses or delays: its error table row by row, parked writes, crashes between
// the steps of a change, ids of any kind, older servers, and what is not sent twice.

import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { documentHash, type Upsert } from '../../src/sinks/search/index.ts'
import { meilisearchOverHttp } from '../../src/sinks/search/meilisearch/api.ts'
import { primaryKeyOf } from '../../src/sinks/search/meilisearch/document.ts'
import { type Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { isParked, type Outcome, type Parked } from '../../src/sinks/sink.ts'
import {
  type DoubleRequest,
  type Fault,
  type MeilisearchDouble,
  meilisearchDouble,
} from '../support/meilisearch/double.ts'
import { Refusal } from '../support/meilisearch/double-store.ts'

const key = 'double-master-key'
const definition = { fields: { title: { kind: 'text' }, pages: { kind: 'number' } } } as const
const wider = { fields: { ...definition.fields, owner: { kind: 'keyword', facet: true } } } as const
const closers: (() => Promise<unknown>)[] = []

let double: MeilisearchDouble
let engine: Meilisearch

async function open(version?: string): Promise<void> {
  double = await meilisearchDouble({ key, ...(version !== undefined && { version }) })
  const { url } = double
  engine = meilisearch({ url, key, timeoutMs: 2_000, taskMs: 5_000 })
  closers.push(() => engine.close().then(() => double.stop()))
  await engine.ensureIndex('documents', definition)
}

beforeEach(() => open())
afterAll(async () => {
  for (const close of closers) await close()
})

const titled = (id: string, version: number, title = `title of ${id}`): Upsert => ({
  ...{ id, version: BigInt(version), json: JSON.stringify({ title }) },
})
const names = (outcomes: readonly Outcome[]) => outcomes.map(({ outcome }) => outcome)
const isWrite = ({ method, path }: DoubleRequest) =>
  method === 'POST' && path.endsWith('/documents/documents')
const two = () => [titled('a', 1), titled('b', 2)]

describe('the error table', () => {
  const auth = (code: string, status: number) => new Refusal(status, code, 'no', 'auth')
  const system = (code: string) => new Refusal(422, code, 'no', 'system')
  const refusals: [what: string, fault: Fault, batch: string, single: string][] = [
    ['invalid_api_key', auth('invalid_api_key', 403), 'misconfigured', 'misconfigured'],
    ['no header', auth('missing_authorization_header', 401), 'misconfigured', 'misconfigured'],
    ['payload_too_large', new Refusal(413, 'payload_too_large', 'no'), 'split', 'rejected'],
    ['malformed_payload', new Refusal(400, 'malformed_payload', 'no'), 'split', 'rejected'],
    [
      'content type',
      new Refusal(415, 'invalid_content_type', 'no'),
      'misconfigured',
      'misconfigured',
    ],
    ['bad_request', new Refusal(400, 'bad_request', 'no'), 'misconfigured', 'misconfigured'],
    ['503', new Refusal(503, 'internal', 'no', 'internal'), 'unavailable', 'unavailable'],
    ['500', new Refusal(500, 'internal', 'no', 'internal'), 'unavailable', 'unavailable'],
    ['no space at once', system('no_space_left_on_device'), 'unavailable', 'unavailable'],
    ['too many requests', system('too_many_search_requests'), 'unavailable', 'unavailable'],
    ['an answer in HTML', 'html', 'unavailable', 'unavailable'],
    ['half an answer', 'half', 'unavailable', 'unavailable'],
    ['a cut connection', 'cut', 'unavailable', 'unavailable'],
    ['a redirect', new Refusal(302, 'moved', 'no'), 'misconfigured', 'misconfigured'],
  ]

  it.each(refusals)('%s, at once', async (_, fault, batch, single) => {
    double.spoil(fault, isWrite)
    expect(names(await engine.upsert('documents', two()))).toEqual([batch, batch])
    expect(names(await engine.upsert('documents', [titled('a', 3)]))).toEqual([single])
    expect(await engine.count('documents')).toBe(fault === 'half' ? 2 : 0)
  })

  const failures: [code: string, type: string, batch: string, single: string][] = [
    ['invalid_document_id', 'invalid_request', 'split', 'rejected'],
    ['missing_document_id', 'invalid_request', 'split', 'rejected'],
    ['invalid_document_geo_field', 'invalid_request', 'split', 'rejected'],
    ['document_fields_limit_reached', 'invalid_request', 'split', 'rejected'],
    ['something_new', 'invalid_request', 'split', 'rejected'],
    ['index_primary_key_already_exists', 'invalid_request', 'misconfigured', 'misconfigured'],
    ['no_space_left_on_device', 'system', 'unavailable', 'unavailable'],
    ['database_size_limit_reached', 'internal', 'unavailable', 'unavailable'],
    ['too_many_open_files', 'system', 'retry', 'retry'],
    ['internal', 'internal', 'retry', 'retry'],
  ]

  it.each(failures)('%s (%s), by a task', async (code, type, batch, single) => {
    double.queue.fault = () => new Refusal(400, code, 'no', type)
    expect(names(await engine.upsert('documents', two()))).toEqual([batch, batch])
    expect(names(await engine.delete('documents', [{ id: 'a', version: 4n }]))).toEqual([single])
  })

  it('a cancelled task is tried again; a full disk is known by its words too', async () => {
    double.queue.hold()
    const parked = (await engine.upsert('documents', two(), { park: true })) as Parked
    const { tasks } = JSON.parse(parked.parked)
    double.queue.cancel(tasks)
    double.queue.release()
    expect(await engine.poll([parked.parked])).toMatchObject([{ outcome: 'retry' }])
    double.queue.fault = () =>
      new Refusal(500, 'internal', 'No space left on device (os error 28)', 'internal')
    expect(names(await engine.upsert('documents', two()))).toEqual(['unavailable', 'unavailable'])
  })

  it('says nothing of documents or keys', async () => {
    const secret = 'secret-of-the-document'
    const says = `Document doesn't have a \`x\` attribute: \`{"title":"${secret}"}\`.`
    double.queue.fault = () => new Refusal(400, 'missing_document_id', says)
    const outcomes = await engine.upsert('documents', [titled('a', 1, secret)])
    double.key = 'another'
    const refused = await engine.upsert('documents', [titled('a', 2)])
    const text = JSON.stringify([outcomes, refused])
    expect(text).not.toContain(secret)
    expect(text).not.toContain(key)
  })

  it('a search that is throttled or refused says so', async () => {
    const throttled = new Refusal(503, 'too_many_search_requests', 'busy', 'system', {
      'retry-after': '10',
    })
    double.spoil(throttled, ({ path }) => path === '/multi-search')
    await expect(engine.search('documents')).rejects.toMatchObject({
      code: 'too_many_search_requests',
    })
    expect(names(await engine.upsert('documents', two()))).toEqual(['delivered', 'delivered'])
  })
})

describe('parked writes', () => {
  it('many handles are asked for in one call, and none of them is lost by a restart', async () => {
    double.queue.hold()
    const handles: string[] = []
    for (let at = 0; at < 5; at++) {
      const result = await engine.upsert('documents', [titled(`d${at}`, at + 1)], { park: true })
      handles.push((result as Parked).parked)
    }
    expect(await engine.poll(handles)).toEqual(handles.map(() => undefined))
    await double.restart()
    const other = meilisearch({ url: double.url, key })
    double.queue.release()
    await expect
      .poll(async () => (await other.poll(handles)).map((one) => one?.outcome))
      .toEqual(handles.map(() => 'delivered'))
    const asked = double.requests.filter(({ path }) => path === '/tasks')
    expect(asked.at(-1)?.query.get('uids')?.split(',')).toHaveLength(5)
    expect(new Set(double.queue.tasks.slice(-5).map(({ batchUid }) => batchUid)).size).toBe(1)
    await other.close()
  })

  it('a batch with one bad document asks to be split; a handle nobody knows is sent again', async () => {
    const bad = { id: 'bad', version: 9n, json: '{"_geo":{"lat":"north"}}' }
    const result = await engine.upsert('documents', [...two(), bad], { park: true })
    const poll = async () =>
      (await engine.poll([(result as Parked).parked])).map((one) => one?.outcome)
    await expect.poll(poll).toEqual(['split'])
    const foreign = [
      '{"items":1,"tasks":[999]}',
      'nonsense',
      '{"tasks":[]}',
      '{"items":1,"tasks":["x"]}',
    ]
    expect((await engine.poll(foreign)).map((one) => one?.outcome)).toEqual(
      foreign.map(() => 'retry'),
    )
  })

  it('a document that stands alone is not rejected for another one of the same batch', async () => {
    double.queue.hold()
    const bad = { id: 'bad', version: 1n, json: '{"_geo":{"lat":"north"}}' }
    const handles: string[] = []
    for (const one of [titled('good', 2), bad]) {
      handles.push(((await engine.upsert('documents', [one], { park: true })) as Parked).parked)
    }
    double.queue.release()
    const poll = async () => (await engine.poll(handles)).map((one) => one?.outcome)
    await expect.poll(poll).toEqual(['retry', 'rejected'])
  })

  it('what is known at once is not parked', async () => {
    const park = { park: true } as const
    const bad = { id: 'bad', version: 1n, json: '[]' }
    const mixed = await engine.upsert('documents', [titled('a', 1), bad], park)
    expect(names(mixed as Outcome[])).toEqual(['delivered', 'rejected'])
    const old = await engine.upsert('documents', [titled('a', 1)], park)
    expect(names(old as Outcome[])).toEqual(['superseded'])
    const gone = await engine.delete('documents', [{ id: 'a', version: 2n }], park)
    expect(isParked(gone)).toBe(true)
  })

  it('an older version stays out while the newer one is still a task', async () => {
    double.queue.hold()
    await engine.upsert('documents', [titled('a', 5, 'new')], { park: true })
    expect(names(await engine.upsert('documents', [titled('a', 4, 'old')]))).toEqual(['superseded'])
    await engine.delete('documents', [{ id: 'b', version: 7n }], { park: true })
    expect(names(await engine.upsert('documents', [titled('b', 6)]))).toEqual(['superseded'])
    double.queue.release()
    await expect.poll(() => engine.count('documents')).toBe(1)
  })

  it('the same call again after its answer was lost changes nothing', async () => {
    const end = double.spoil('swallowed', isWrite)
    expect(names(await engine.upsert('documents', two()))).toEqual(['unavailable', 'unavailable'])
    end()
    const again = names(await engine.upsert('documents', two()))
    expect(again.every((name) => name === 'superseded' || name === 'delivered')).toBe(true)
    expect(await engine.count('documents')).toBe(2)
  })

  it('a task that does not end is no failure: nothing is certain', async () => {
    double.queue.hold()
    const impatient = meilisearch({ url: double.url, key, taskMs: 100 })
    expect(names(await impatient.upsert('documents', two()))).toEqual([
      'unavailable',
      'unavailable',
    ])
    await impatient.close()
  })
})

describe('changes that are cut off', () => {
  const steps = [
    'createGeneration',
    'swapGeneration',
    'rollBackGeneration',
    'dropGeneration',
  ] as const

  /** Breaks off at the nth request that changes something. */
  function breakAt(at: number): () => void {
    let seen = 0
    return double.spoil('swallowed', ({ method, path }) => {
      const changes = method !== 'GET' && !/fetch$|multi-search/.test(path)
      return changes && seen++ === at
    })
  }

  async function run(step: (typeof steps)[number]): Promise<void> {
    if (step === 'createGeneration') await engine.createGeneration('documents', wider)
    else if (step === 'dropGeneration') {
      const all = await engine.generations('documents')
      const other = all.find(({ state }) => state !== 'live')
      if (other !== undefined) await engine.dropGeneration('documents', other.id)
    } else await engine[step]('documents')
  }

  /** The mark of a process that died stays for a minute; here it is as old as that at once. */
  function takeAwayMark(): void {
    if (double.store.uids().includes('documents-lock')) {
      double.store.run('documents-lock', { type: 'indexDeletion' })
    }
  }

  const want: Record<(typeof steps)[number], string[]> = {
    createGeneration: ['live', 'building'],
    swapGeneration: ['retired', 'live'],
    rollBackGeneration: ['live', 'retired'],
    dropGeneration: ['live'],
  }

  it.each(steps)(
    '%s: wherever it breaks off, the index is whole and the next try ends it',
    async (step) => {
      await engine.upsert('documents', two())
      for (const before of steps.slice(0, steps.indexOf(step))) await run(before)
      for (let at = 0; at < 6; at++) {
        const end = breakAt(at)
        await run(step).catch(() => {})
        end()
        takeAwayMark()
        expect(await engine.count('documents')).toBeLessThanOrEqual(2)
        const states = (await engine.generations('documents')).map(({ state }) => state)
        expect(states.filter((state) => state === 'live')).toEqual(['live'])
        if (states.join() === want[step].join()) break
      }
      const there = (await engine.generations('documents')).map(({ state }) => state)
      if (there.join() !== want[step].join()) await run(step)
      const states = (await engine.generations('documents')).map(({ state }) => state)
      expect(states).toEqual(want[step])
    },
  )

  it('ensureIndex goes on where another one broke off', async () => {
    for (let at = 0; at < 9; at++) {
      const end = breakAt(at)
      await engine.ensureIndex('others', definition).catch(() => {})
      end()
    }
    const { state } = await engine.ensureIndex('others', definition)
    expect(state).toBe('unchanged')
    expect(names(await engine.upsert('others', two()))).toEqual(['delivered', 'delivered'])
  })

  it('of two processes that swap at the same time one is refused', async () => {
    const other = meilisearch({ url: double.url, key })
    await engine.createGeneration('documents', wider)
    const both = await Promise.allSettled([
      engine.swapGeneration('documents'),
      other.swapGeneration('documents'),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'HMD_SEARCH_GENERATION' },
    })
    expect((await engine.generations('documents')).map(({ state }) => state)).toEqual([
      'retired',
      'live',
    ])
    await other.close()
  })

  it('a write that had not heard of a drop brings nothing back', async () => {
    const slow = meilisearch({ url: double.url, key })
    const made = await engine.createGeneration('documents', wider)
    await slow.upsert('documents', [titled('a', 1)])
    await engine.dropGeneration('documents', made.id)
    const [outcome] = await slow.upsert('documents', [titled('a', 2)])
    expect(outcome?.outcome).toMatch(/delivered|superseded/)
    expect((await slow.get('documents', 'a'))?.version).toBe(2n)
    expect((await slow.generations('documents')).length).toBe(1)
    await slow.close()
  })

  it('an index that somebody deleted is made again with its settings, and that is said', async () => {
    await engine.upsert('documents', two())
    double.store.run('documents', { type: 'indexDeletion' })
    const [outcome] = await engine.upsert('documents', [titled('c', 3)])
    expect(outcome).toMatchObject({
      outcome: 'unavailable',
      message: /made again, empty: rebuild it/,
    })
    expect(names(await engine.upsert('documents', [titled('c', 3)]))).toEqual(['delivered'])
    expect((await engine.search('documents', { sort: [{ field: 'pages' }] })).total).toBe(1)
  })

  it("somebody else's index is left alone", async () => {
    double.store.run('movies', { type: 'indexCreation', primaryKey: 'id' })
    await expect(engine.ensureIndex('movies', definition)).rejects.toMatchObject({
      code: 'HMD_SEARCH_SETUP',
      message: /not made by Hermod/,
    })
  })
})

describe('documents', () => {
  const ids = [
    'plain',
    'hermod-x',
    'ß/ü?',
    ' ',
    'A',
    'a',
    '.',
    '..',
    '%2F',
    'x'.repeat(511),
    'ü'.repeat(250),
  ]

  it('any id works, and none is taken for another', async () => {
    await engine.upsert(
      'documents',
      ids.map((id, at) => titled(id, at + 1)),
    )
    expect(await engine.count('documents')).toBe(ids.length)
    for (const id of ids) expect((await engine.get('documents', id))?.id).toBe(id)
    const { documents } = await engine.scan('documents')
    expect(documents.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(new Set(ids.map(primaryKeyOf)).size).toBe(ids.length)
    for (const id of ids) expect(primaryKeyOf(id)).toMatch(/^[A-Za-z0-9_-]{1,511}$/)
    await engine.delete(
      'documents',
      ids.map((id) => ({ id, version: 99n })),
    )
    expect(await engine.count('documents')).toBe(0)
  })

  it('half a surrogate pair does not spoil a batch, and our names are kept', async () => {
    const half = { id: 'half', version: 1n, json: '{"title":"a\\ud800b"}' }
    const ours = { id: 'ours', version: 2n, json: '{"hermod_id":"x"}' }
    const number = { id: 'number', version: 3n, json: '{"huge":1e999}' }
    expect(names(await engine.upsert('documents', [half, titled('a', 4), ours]))).toEqual([
      'delivered',
      'delivered',
      'rejected',
    ])
    expect((await engine.get('documents', 'half'))?.document.title).toBe('a\ufffdb')
    expect(names(await engine.upsert('documents', [titled('b', 5), number]))).toEqual([
      'split',
      'split',
    ])
    expect(names(await engine.upsert('documents', [number]))).toEqual(['rejected'])
  })

  it('a bulk is compressed; settings that are there are not sent again', async () => {
    await engine.upsert('documents', [titled('long', 1, 'word '.repeat(2_000))])
    expect(double.requests.find(isWrite)?.headers['content-encoding']).toBe('gzip')
    const patches = () => double.requests.filter(({ method }) => method === 'PATCH').length
    const before = patches()
    await engine.ensureIndex('documents', definition)
    expect(patches()).toBe(before)
  })

  it.each(['1.10.0', '1.15.2', '1.16.0', '1.53.0'])(
    'a scan of server %s sees each document once',
    async (version) => {
      await open(version)
      const many = Array.from({ length: 25 }, (_, at) => titled(`d${at}`, at + 1))
      await engine.upsert('documents', many)
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await engine.scan('documents', {
          limit: 10,
          ...(after !== undefined && { after }),
        })
        for (const { id, hash } of page.documents) {
          expect(hash).toBe(documentHash({ title: `title of ${id}` }))
          seen.push(id)
        }
        after = page.next
      } while (after !== undefined)
      await expect(engine.scan('documents', { after: 'x' })).rejects.toMatchObject({
        code: 'HMD_OPTION_INVALID',
      })
      expect(seen.toSorted()).toEqual(many.map(({ id }) => id).toSorted())
    },
  )
})

describe('values', () => {
  it('quotes and backslashes are values like any other, and case matters', async () => {
    const strange = [
      '"',
      "'",
      '\\',
      'a\\',
      '\\"',
      '" OR owner = "x',
      'Anna',
      'anna',
      ' anna',
      'ﬁ',
      'fi',
      'x'.repeat(500),
    ]
    await engine.ensureIndex('values', wider)
    await engine.upsert(
      'values',
      strange.map((owner, at) => ({
        ...{ id: `v${at}`, version: BigInt(at + 1), json: JSON.stringify({ owner }) },
      })),
    )
    for (const [at, owner] of strange.entries()) {
      const { hits } = await engine.search('values', { filters: { owner } })
      expect(hits.map(({ id }) => id)).toEqual([`v${at}`])
    }
    const { facets } = await engine.search('values', { facets: ['owner'], limit: 0 })
    const shown = facets.owner?.map(({ value }) => value)
    expect(shown?.toSorted()).toEqual([...strange.slice(0, -1), 'x'.repeat(100)].toSorted())
  })
})

describe('options', () => {
  it('are checked, and the key is never shown', () => {
    for (const options of [
      {},
      { url: 'ftp://x' },
      { url: 'http://x', key: ' ' },
      { url: 'http://x', prefix: 'a b' },
    ]) {
      expect(() => meilisearch(options as never)).toThrow(/meilisearch: /)
    }
    expect(() => meilisearch({ url: 'http://x', apiKey: 'secret-key' } as never)).toThrow(
      expect.not.stringContaining('secret-key'),
    )
  })

  it('a key that may not ask for the version is enough', async () => {
    const end = double.spoil(
      new Refusal(403, 'invalid_api_key', 'no', 'auth'),
      ({ path }) => path === '/version',
    )
    expect((await engine.probe()).version).toMatch(/^1\./)
    end()
    double.key = 'another'
    await expect(engine.probe()).rejects.toMatchObject({ code: 'invalid_api_key' })
    await expect(meilisearchOverHttp({ url: double.url }).version()).rejects.toMatchObject({
      code: 'missing_authorization_header',
    })
  })
})
