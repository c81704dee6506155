// What Meilisearch refuses, loses or delays: its error table row by row, parked writes, and crashes
// between the steps of a change.

import { beforeEach, describe, expect, it } from 'vitest'
import { type Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { isParked, type Outcome, type Parked } from '../../src/sinks/sink.ts'
import type { Fault, MeilisearchDouble } from '../support/meilisearch/double.ts'
import { Refusal } from '../support/meilisearch/double-store.ts'
import { definition, isWrite, key, names, openIndex, titled, two, wider } from '../support/meilisearch/open-index.ts'

let double: MeilisearchDouble
let engine: Meilisearch

beforeEach(async () => {
  ;({ double, engine } = await openIndex())
})

describe('the error table', () => {
  const auth = (code: string, status: number) => new Refusal(status, code, 'no', 'auth')
  const system = (code: string) => new Refusal(422, code, 'no', 'system')
  const refusals: [what: string, fault: Fault, batch: string, single: string][] = [
    ['invalid_api_key', auth('invalid_api_key', 403), 'misconfigured', 'misconfigured'],
    ['no header', auth('missing_authorization_header', 401), 'misconfigured', 'misconfigured'],
    ['payload_too_large', new Refusal(413, 'payload_too_large', 'no'), 'split', 'rejected'],
    ['malformed_payload', new Refusal(400, 'malformed_payload', 'no'), 'split', 'rejected'],
    ['content type', new Refusal(415, 'invalid_content_type', 'no'), 'misconfigured', 'misconfigured'],
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
    ['internal', 'internal', 'split', 'retry'],
    ['max_fields_limit_exceeded', 'invalid_request', 'split', 'rejected'],
    ['too_many_vectors', 'invalid_request', 'split', 'rejected'],
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
    double.queue.fault = () => new Refusal(500, 'internal', 'No space left on device (os error 28)', 'internal')
    expect(names(await engine.upsert('documents', two()))).toEqual(['unavailable', 'unavailable'])
  })

  it('the reason stays readable behind the name of the index', async () => {
    const says = async (message: string, type = 'internal') => {
      double.queue.fault = () => new Refusal(500, type, message, type)
      const [outcome] = await engine.upsert('documents', [titled('a', 1)])
      return outcome
    }
    const reason = 'Index `documents`: MDB_CORRUPTED: Located page was wrong type, and the reader gave up at once'
    expect(await says(reason)).toMatchObject({ message: reason })
    const full = 'Index `documents`: No space left on device (os error 28), while the documents were being written'
    expect(await says(full)).toMatchObject({ outcome: 'unavailable', message: full })
    const quoted = await says(`Index \`documents\`: The value \`"${'x'.repeat(60)}"\` is invalid.`, 'new')
    expect(quoted?.message).toBe('Index `documents`: The value `…` is invalid.')
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
    const poll = async () => (await engine.poll([(result as Parked).parked])).map((one) => one?.outcome)
    await expect.poll(poll).toEqual(['split'])
    const foreign = ['{"items":1,"tasks":[999]}', 'nonsense', '{"tasks":[]}', '{"items":1,"tasks":["x"]}']
    expect((await engine.poll(foreign)).map((one) => one?.outcome)).toEqual(foreign.map(() => 'retry'))
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
    expect(names(await impatient.upsert('documents', two()))).toEqual(['unavailable', 'unavailable'])
    await impatient.close()
  })
})

describe('documents that fail a whole batch without being named', () => {
  const bad: [what: string, json: string][] = [
    ['vectors that are no object', '{"_vectors":"many"}'],
    ['a number without end', '{"huge":1e400}'],
    ['too deep', `${'{"a":'.repeat(130)}1${'}'.repeat(130)}`],
  ]

  it.each(bad)('%s: a merged batch splits, and the innocent are neither rejected nor lost', async (_, json) => {
    double.queue.hold()
    const handles: string[] = []
    const culprit = { id: 'bad', version: 1n, json }
    for (const one of [[titled('a', 1), titled('b', 2)], [titled('c', 3)], [culprit]]) {
      handles.push(((await engine.upsert('documents', one, { park: true })) as Parked).parked)
    }
    double.queue.release()
    const poll = async () => (await engine.poll(handles)).map((one) => one?.outcome)
    await expect.poll(poll).toEqual(['split', 'retry', 'retry'])
    // Sent again at the same time: they are kept apart now, so only the bad one fails.
    double.queue.hold()
    const again: string[] = []
    for (const one of [titled('a', 1), titled('b', 2), culprit, titled('c', 3)]) {
      again.push(((await engine.upsert('documents', [one], { park: true })) as Parked).parked)
    }
    double.queue.release()
    const outcomes = async () => (await engine.poll(again)).map((one) => one?.outcome)
    await expect.poll(outcomes).toEqual(['delivered', 'delivered', 'rejected', 'delivered'])
    expect(await engine.count('documents')).toBe(3)
  })

  it('a server that can take nothing rejects nothing', async () => {
    double.queue.fault = () => new Refusal(500, 'internal', 'MDB_PANIC: Update of meta page failed', 'internal')
    expect(names(await engine.upsert('documents', two()))).toEqual(['split', 'split'])
    for (let at = 0; at < 3; at++) {
      expect(names(await engine.upsert('documents', [titled(`d${at}`, at + 1)]))).toEqual(['retry'])
    }
  })

  it('a document with too many vectors or fields is told apart from the others', async () => {
    const embeddings = Array.from({ length: 300 }, () => [1, 2])
    const vectors = { id: 'v', version: 1n, json: JSON.stringify({ _vectors: { mine: { embeddings } } }) }
    const fields = Object.fromEntries(Array.from({ length: 66_000 }, (_, at) => [`f${at}`, 1]))
    for (const one of [vectors, { id: 'f', version: 1n, json: JSON.stringify(fields) }]) {
      expect(names(await engine.upsert('documents', [titled('a', 1), one]))).toEqual(['split', 'split'])
      expect(names(await engine.upsert('documents', [one]))).toEqual(['rejected'])
    }
  })
})

describe('a server before 1.12', () => {
  it('may fail to list its indexes while one is deleted: it is asked again', async () => {
    const { double: old, engine: at } = await openIndex('1.10.3')
    const made = await at.createGeneration('documents', wider)
    await at.dropGeneration('documents', made.id)
    old.store.run('other', { type: 'indexCreation', primaryKey: 'id' })
    old.store.run('other', { type: 'indexDeletion' })
    expect((await at.generations('documents')).map(({ state }) => state)).toEqual(['live'])
    old.spoil(new Refusal(500, 'internal', 'still', 'internal'), ({ path }) => path === '/indexes')
    await expect(at.generations('documents')).rejects.toThrow('still')
  })

  it('says nothing of batches: a document that fails alone is tried again', async () => {
    const { engine: at } = await openIndex('1.10.3')
    const odd = { id: 'odd', version: 1n, json: '{"_vectors":5}' }
    expect(names(await at.upsert('documents', [odd]))).toEqual(['retry'])
    expect(names(await at.upsert('documents', [titled('a', 1)]))).toEqual(['delivered'])
    expect(names(await at.upsert('documents', [odd]))).toEqual(['retry'])
  })
})

describe('changes that are cut off', () => {
  const steps = ['createGeneration', 'swapGeneration', 'rollBackGeneration', 'dropGeneration'] as const

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

  it.each(steps)('%s: wherever it breaks off, the index is whole and the next try ends it', async (step) => {
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
  })

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
    const both = await Promise.allSettled([engine.swapGeneration('documents'), other.swapGeneration('documents')])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'HMD_SEARCH_GENERATION' },
    })
    expect((await engine.generations('documents')).map(({ state }) => state)).toEqual(['retired', 'live'])
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

  it('and so is one that is called like a generation, but was never one', async () => {
    double.store.run('documents-g77', { type: 'indexCreation', primaryKey: 'id' })
    Object.assign(double.store.get('documents-g77'), { createdAt: '2020-01-01T00:00:00Z' })
    await engine.createGeneration('documents', definition)
    expect(() => double.store.get('documents-g77')).not.toThrow()
  })
})
