// Backfill, rebuild while rows change, roll back: in every engine, through its own generations. A
// reader never sees fewer documents than were there all the time, and verify finds nothing.

import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { drain } from '../../src/testing/index.ts'
import { everyEngine } from '../support/every-engine.ts'
import { slowTasks } from '../support/slow-tasks.ts'
import { BY, type Profiles, prepare, profiles } from './profiles.ts'

const db = useDatabase()
const rows = 200

beforeAll(() => prepare(db, rows))

class Stage {
  readonly name: string
  readonly #made: Profiles

  constructor(name: string, made: Profiles) {
    this.name = name
    this.#made = made
  }

  async fillRebuildAndRollBack(): Promise<void> {
    const { index, outbox, engine } = this.#made
    await index.ensure()
    await outbox.start({ pollMs: 50, concurrency: 1, upkeep: false })
    await this.#carriedOut(outbox.backfill(this.name, BY))
    await this.#expectNoDrift()
    const rebuilding = this.#carriedOut(outbox.rebuild(this.name, {}, BY))
    const [fewest] = await Promise.all([this.#fewestSeen(rebuilding), this.#edit(20)])
    expect([this.name, fewest]).toEqual([this.name, rows])
    await this.#expectNoDrift()
    const back = this.#carriedOut(outbox.rebuild(this.name, { rollback: true }, BY))
    expect([this.name, await this.#fewestSeen(back)]).toEqual([this.name, rows])
    await this.#expectNoDrift()
    const states = (await engine.generations(this.name)).map(({ state }) => state)
    expect([this.name, ...states.sort()]).toEqual([this.name, 'live', 'retired'])
  }

  async #carriedOut(asked: Promise<{ id: bigint }>) {
    const journey = await this.#made.outbox.journeys.wait((await asked).id)
    expect([this.name, journey.state, journey.error]).toEqual([this.name, 'succeeded', null])
    return journey
  }

  /** What was written last is in the index, and nothing else. */
  async #expectNoDrift(): Promise<void> {
    await drain(this.#made.outbox)
    const { result } = await this.#carriedOut(this.#made.outbox.verify(this.name, {}, BY))
    expect({ name: this.name, ...result }).toMatchObject({
      name: this.name,
      source: rows,
      missing: 0,
      orphaned: 0,
      stale: 0,
    })
  }

  async #edit(times: number): Promise<void> {
    for (let n = 1; n <= times; n++) {
      const bio = `edited for ${this.name} ${n}`
      await db.query('update profile set bio = $2 where id = $1', [1 + ((n * 17) % rows), bio])
    }
  }

  /** The fewest documents that a search every 20 ms saw until `ends`. */
  async #fewestSeen(ends: Promise<unknown>): Promise<number> {
    let ended = false
    const end = () => {
      ended = true
    }
    ends.then(end, end)
    let fewest = Number.POSITIVE_INFINITY
    while (!ended) {
      const found = await this.#made.engine.search(this.name, { query: 'person', limit: 1 })
      fewest = Math.min(fewest, found.total)
      await pause(20)
    }
    await ends
    return fewest
  }
}

// All at once: most of the time each waits until other processes would know its generations. None closes
// before the last is through: its edits are events for all of them, and `drain` waits for every subscription.
describe('every engine', () => {
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  it(`is filled, rebuilt under edits and rolled back without a gap: ${Object.keys(everyEngine).join(', ')}`, async () => {
    const stages: Stage[] = []
    for (const [engineName, open] of Object.entries(everyEngine)) {
      const name = `${engineName}_profiles`
      const { engine, stop } = await open({ pool: db.pool, index: name, tasks: slowTasks })
      closers.push(stop)
      const made = profiles(db, { engine, name, index: { keepMs: 60_000 } })
      closers.push(() => made.outbox.close())
      stages.push(new Stage(name, made))
    }
    await Promise.all(stages.map((stage) => stage.fillRebuildAndRollBack()))
  }, 240_000)
})
