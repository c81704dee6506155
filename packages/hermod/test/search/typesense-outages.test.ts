// Outages of Typesense through a real outbox: whatever happened on the way, at the end no document is
// missing or stale, none is dead but the truly bad one, and what a person must repair spends nothing.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'
import { searchSink } from '../../src/sinks/search/index.ts'
import { type TypesenseSearch, typesense } from '../../src/sinks/search/typesense.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { type DoubleRequest, type Fault, TypesenseDouble } from '../support/typesense/double.ts'

const db = useDatabase()
const double = new TypesenseDouble()
const definition = { fields: { title: { kind: 'text' }, pages: { kind: 'number' } } } as const
const quiet = { upkeep: false, listen: false, pollMs: 10, busyPollMs: 5 }
let clock: FakeClock

beforeAll(async () => {
  await double.open()
  clock = await fakeClock(db.pool as never)
})
afterAll(() => double.close())

const importing = ({ path }: DoubleRequest) => path.endsWith('/import')
let scenes = 0

/** A subscription, an index and documents of their own. */
class Scene {
  readonly index = `scene_${++scenes}`
  readonly engine: TypesenseSearch
  readonly outbox: Outbox
  /** What the index must hold at the end. */
  readonly wanted = new Map<string, string>()

  constructor(options: { apiKey?: string } = {}) {
    this.engine = typesense({
      url: double.url,
      apiKey: double.apiKey,
      timeoutMs: 400,
      ...options,
    })
    this.outbox = createOutbox({ pool: db.pool })
    this.outbox.subscribe(this.index, {
      revision: 1,
      types: [`${this.index}.*`],
      coalesce: 'latest',
      from: 'beginning',
      lanes: 1,
      sink: searchSink(this.engine, { index: this.index }),
    })
  }

  /** Written, changed and in part deleted. */
  async change(documents: number, from = 0): Promise<void> {
    const ids = Array.from({ length: documents }, (_, at) => `d${from + at}`)
    for (const round of ['first', 'second', 'deleted'] as const) {
      const touched = round === 'deleted' ? ids.filter((_, at) => at % 5 === 0) : ids
      const events = touched.map((id) => this.#event(id, round))
      await this.outbox.transaction((tx) => this.outbox.emit(tx, events))
    }
  }

  #event(id: string, round: 'first' | 'second' | 'deleted') {
    const title = `${round} ${id}`
    if (round === 'deleted') this.wanted.delete(id)
    else this.wanted.set(id, title)
    const type = `${this.index}.${round === 'deleted' ? 'deleted' : 'changed'}`
    return { type, aggregate: ['doc', id] as [string, string], payload: { title } }
  }

  async emitBad(id: string): Promise<void> {
    await this.outbox.transaction((tx) =>
      this.outbox.emit(tx, {
        type: `${this.index}.changed`,
        aggregate: ['doc', id],
        payload: { title: 'bad', pages: 'many' },
      }),
    )
  }

  async run(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      await this.outbox.runOnce(quiet)
      await clock.advance(61_000)
    }
  }

  async settled(): Promise<boolean> {
    const { pending, retrying } = await this.stats()
    return pending === 0 && retrying === 0
  }

  async runUntilSettled(): Promise<void> {
    for (let round = 0; round < 30; round++) {
      await this.run(1)
      if (await this.settled()) return
    }
    throw new Error(`not settled: ${JSON.stringify(await this.stats())}`)
  }

  async stats() {
    const { subscriptions } = await this.outbox.stats()
    const found = subscriptions.find(({ name }) => name === this.index)
    if (found === undefined) throw new Error('no such subscription')
    return found
  }

  /** Title by id, as the index has it. */
  async found(): Promise<Map<string, unknown>> {
    const { hits } = await this.engine.search(this.index, { limit: 1_000 })
    return new Map(hits.map(({ id, document }) => [id, document.title]))
  }

  async expectComplete(): Promise<void> {
    const sorted = (map: ReadonlyMap<string, unknown>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
    expect(sorted(await this.found())).toEqual(sorted(this.wanted))
  }

  async rows(): Promise<unknown[]> {
    return db.query('select state, attempts from outbox.delivery where subscription = $1', [this.index])
  }

  async close(): Promise<void> {
    double.faults.length = 0
    await this.outbox.close()
    await this.engine.close()
  }
}

describe('a destination in trouble loses nothing and kills nothing', () => {
  const busy = 'Rejecting write: running out of resource type: OUT_OF_DISK'
  const faults: [string, Omit<Fault, 'when'>][] = [
    ['429 with Retry-After', { status: 429, headers: { 'retry-after': '30' }, times: 3 }],
    ['503 with Retry-After', { status: 503, headers: { 'retry-after': '30' }, times: 3 }],
    ['time-outs after accepting', { silence: true, times: 2 }],
    ['answers cut in the middle', { cut: true, times: 3 }],
    ['answers with fewer lines', { lines: 3, times: 2 }],
    ['half of a bulk refused for want of disk', { refuseEverySecond: busy, times: 3 }],
  ]
  it.each(faults)('%s', async (_, fault) => {
    const scene = new Scene()
    await scene.engine.ensureIndex(scene.index, definition)
    double.faults.push({ when: importing, ...fault })
    await scene.change(40)
    await scene.runUntilSettled()
    await scene.expectComplete()
    expect(await scene.stats()).toMatchObject({ dead: 0, retrying: 0 })
    await scene.close()
  })

  it('connections refused, and then a quota met in the middle of an import of 500', async () => {
    const scene = new Scene()
    await scene.engine.ensureIndex(scene.index, definition)
    await double.close()
    await scene.change(500)
    await scene.run(3)
    expect(await scene.rows()).toEqual([])
    expect((await scene.stats()).health).toMatchObject({ word: 'unavailable' })
    await double.open()
    double.faults.push({ when: importing, refuseEverySecond: busy, times: 2 })
    await scene.runUntilSettled()
    await scene.expectComplete()
    expect(await scene.stats()).toMatchObject({ dead: 0, retrying: 0 })
    await scene.close()
  })

  it('only the truly bad document is dead, with a sentence', async () => {
    const scene = new Scene()
    await scene.engine.ensureIndex(scene.index, definition)
    double.faults.push({ when: importing, status: 503, times: 2 })
    await scene.change(20)
    await scene.emitBad('bad')
    await scene.runUntilSettled()
    await scene.expectComplete()
    expect(await scene.stats()).toMatchObject({ dead: 1, retrying: 0 })
    const letters = await scene.outbox.deadLetters()
    const [dead] = letters.filter(({ subscription }) => subscription === scene.index)
    expect(dead?.error).toContain('pages must be a number')
    expect(dead?.error).not.toContain('many')
    await scene.close()
  })
})

describe('what a person must repair pauses the subscription and spends nothing', () => {
  it('a wrong key', async () => {
    const scene = new Scene({ apiKey: 'wrong-secret-key' })
    const right = typesense({ url: double.url, apiKey: double.apiKey })
    await right.ensureIndex(scene.index, definition)
    await scene.change(30)
    await scene.run(4)
    expect(await scene.rows()).toEqual([])
    const { health, dead } = await scene.stats()
    expect({ word: health.word, dead }).toEqual({ word: 'misconfigured', dead: 0 })
    expect(health.why).toMatch(/Typesense answered 401.*Check apiKey/)
    expect(health.why).not.toContain('wrong-secret-key')
    expect(await right.count(scene.index)).toBe(0)
    await right.close()
    await scene.close()
  })

  it('collections that somebody dropped; ensuring the index heals it', async () => {
    const scene = new Scene()
    await scene.engine.ensureIndex(scene.index, definition)
    await scene.change(10)
    await scene.runUntilSettled()
    double.dropAll()
    scene.wanted.clear()
    await scene.change(30, 100)
    await scene.run(4)
    expect(await scene.rows()).toEqual([])
    expect((await scene.stats()).health).toMatchObject({ word: 'misconfigured' })
    expect((await scene.stats()).health.why).toContain(`there is no index ${scene.index}`)
    await scene.engine.ensureIndex(scene.index, definition)
    await scene.runUntilSettled()
    await scene.expectComplete()
    expect(await scene.stats()).toMatchObject({ dead: 0, health: { word: 'ok' } })
    await scene.close()
  })
})
