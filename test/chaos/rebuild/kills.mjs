// Rebuilds whose worker is killed (kill -9) in every phase, while rows change and somebody searches.
// Every rebuild must complete after the restarts, with nothing missing, orphaned or stale.

import { setTimeout as pause } from 'node:timers/promises'
import { startProcess } from '../processes.mjs'
import { declare, Edits, FILL, TABLE } from './profiles.mjs'

export const phases = ['create', 'load', 'catch-up', 'verify', 'swap', 'settle', 'keep', 'drop']
/** How long after its phase began a worker may die; long phases are hit anywhere. */
const spreadMs = {
  create: 30,
  load: 2_500,
  'catch-up': 60,
  verify: 900,
  swap: 150,
  settle: 60,
  keep: 600,
  drop: 5,
}
const by = { actor: 'kills' }

/** Table, capture and a first fill. */
export async function prepare({ hermod, postgresSearch }, { pool, rows }) {
  await pool.query(TABLE)
  await pool.query(FILL, [rows])
  const { outbox, index } = declare(hermod, {
    pool,
    engine: postgresSearch({ pool }),
    callMs: 1_000,
  })
  await outbox.watch('talent.profile', { type: 'profile', payload: 'reference' })
  await index.ensure()
  await outbox.start({ concurrency: 2 })
  const { id } = await outbox.backfill('profiles', by)
  const { state, error } = await outbox.journeys.wait(id)
  if (state !== 'succeeded') throw new Error(`the first fill ${state}: ${error}`)
  await outbox.close()
}

export class Kills {
  /** `wanted`: kills in each phase; `expire`: leases of the dead end at once. */
  constructor(
    parts,
    {
      pool,
      url,
      rows,
      perSecond,
      wanted,
      leaseMs,
      random,
      expire = false,
      rebuildsMax = Number.POSITIVE_INFINITY,
      only = phases,
      say = () => {},
    },
  ) {
    Object.assign(this, {
      pool,
      url,
      rows,
      wanted,
      leaseMs,
      random,
      expire,
      rebuildsMax,
      only,
      say,
    })
    this.engineUrl = parts.engineUrl
    this.engine = parts.postgresSearch({ pool })
    this.desk = declare(parts.hermod, { pool, engine: this.engine, callMs: 1_000 }).outbox
    this.edits = new Edits(pool, { rows, perSecond, random })
    this.counts = Object.fromEntries(phases.map((phase) => [phase, 0]))
    this.result = { kills: 0, rebuilds: 0, drift: 0, reads: 0, fewestHits: null, problems: [] }
    this.wakes = new Set()
  }

  get done() {
    if (this.result.rebuilds >= this.rebuildsMax) return true
    return this.only.every((phase) => this.counts[phase] >= this.wanted)
  }

  async run() {
    this.edits.start()
    const reading = this.#read()
    await this.#startWorker()
    while (!this.done) await this.#rebuild()
    await this.edits.stop()
    await this.#verify()
    this.reading = false
    await reading
    await this.worker.kill()
    return { ...this.result, killsPerPhase: this.counts, edits: this.edits.made }
  }

  /** One rebuild, killed in each phase that still wants it. */
  async #rebuild() {
    const { id } = await this.desk.rebuild('profiles', { keepMs: 700 }, by)
    const left = new Set(this.only.filter((phase) => this.counts[phase] < this.wanted))
    let over = false
    while (!over) {
      const said = await this.#hears()
      if (said === undefined) over = await this.#isOver(id)
      else if (left.has(said.phase)) {
        left.delete(said.phase)
        await this.#kill(id, said.phase)
      }
    }
    this.result.rebuilds++
    await this.#verify()
    this.say(`rebuild ${this.result.rebuilds}: ${this.result.kills} kills ${JSON.stringify(this.counts)}`)
  }

  async #isOver(id) {
    const journey = await this.desk.journeys.show(id)
    if (journey.state === 'failed' || journey.state === 'cancelled') {
      throw new Error(`rebuild ${id} ${journey.state}: ${journey.error}`)
    }
    return journey.state === 'succeeded' && journey.result.droppedAt !== undefined
  }

  /** Where it was struck is what its row says afterwards. */
  async #kill(id, phase) {
    await pause(this.random() * spreadMs[phase])
    await this.worker.kill()
    const { phase: struck } = await this.desk.journeys.show(id)
    this.counts[struck ?? 'create']++
    this.result.kills++
    if (this.expire) await this.#expire()
    await this.#startWorker()
  }

  async #expire() {
    await this.pool.query('update outbox.journey set owner_until = outbox.clock() where owner is not null')
    await this.pool.query('update outbox.lane set lease_until = outbox.clock() where owner is not null')
    await this.pool.query('delete from outbox.worker')
  }

  async #startWorker() {
    const { url, leaseMs, engineUrl: engine } = this
    const hear = (said) => {
      if (said.problem !== undefined) this.#note(said.problem)
      if (said.phase) this.heard = said
      for (const wake of this.wakes) wake()
    }
    this.heard = undefined
    this.worker = await startProcess('rebuild/worker.mjs', { url, leaseMs, engine, keepMs: 700 }, hear)
  }

  #note(problem) {
    if (this.result.problems.length < 20) this.result.problems.push(problem)
  }

  /** The last phase told, or nothing within a moment. */
  async #hears() {
    const untilMs = performance.now() + 100
    while (this.heard === undefined && performance.now() < untilMs) {
      await new Promise((resolve) => {
        const timer = setTimeout(end, 50)
        const { wakes } = this
        function end() {
          clearTimeout(timer)
          wakes.delete(end)
          resolve()
        }
        wakes.add(end)
      })
    }
    const said = this.heard
    this.heard = undefined
    return said
  }

  async #verify() {
    const { id } = await this.desk.verify('profiles', {}, by)
    const { state, error, result } = await this.desk.journeys.wait(id)
    if (state !== 'succeeded') throw new Error(`verify ${state}: ${error}`)
    this.result.drift += result.missing + result.orphaned + result.stale
    if (this.result.drift > 0) this.say(`drift: ${JSON.stringify(result)}`)
  }

  /** Rows 1 to `rows` are there the whole time, a quarter of them of each kind. */
  async #read() {
    const kinds = ['model', 'photographer', 'videographer', 'creator']
    const least = Math.floor(this.rows / kinds.length)
    this.reading = true
    for (let n = 0; this.reading; n++) {
      const startedMs = performance.now()
      const filters = { kind: kinds[n % kinds.length] }
      const { total } = await this.engine.search('profiles', {
        filters,
        limit: 0,
        countMax: 1_000_000,
      })
      this.result.reads++
      if (total < least) this.#note(`only ${total} hits of ${filters.kind}`)
      const share = total / least
      this.result.fewestHits = Math.min(this.result.fewestHits ?? share, share)
      await pause(Math.max(0, 20 - (performance.now() - startedMs)))
    }
  }
}
