/**
 * What a scenario gets: the stage, who takes part, sizes, the time it may take, and the few moves
 * that all scenarios are made of.
 */
import { measure } from './measure.mjs'
import { interleave } from './rounds.mjs'
import { describeSystem, ours } from './systems.mjs'

export class Bench {
  constructor({ stage, peers, size, settings, untilMs, say }) {
    this.stage = stage
    /** Names of the peers that are installed. */
    this.peers = peers
    this.size = size
    this.untilMs = untilMs
    this.say = say
    this.#settings = settings
  }
  #settings

  get everyone() {
    return [ours, ...this.peers]
  }

  /** How a system is set up, with what a scenario wants differently. */
  settings(system, differences = {}) {
    return { ...this.#settings[system], ...differences }
  }

  rounds(names, measureOne) {
    const { rounds } = this.size
    return interleave({ names, rounds, untilMs: this.untilMs }, (name, round) => {
      this.say(`round ${round + 1}/${rounds}  ${name}`)
      return measureOne(name, round)
    })
  }

  /** A fresh database for one piece of work, gone afterwards. */
  async with(system, options, work) {
    const database = await this.stage.database(system, options)
    try {
      return await work(database)
    } finally {
      await database.drop()
    }
  }

  /** One warm process drains backlogs of these databases; the last one counts, and is checked. */
  async drain(system, backlogs, options = {}) {
    const { role = 'drain', settings = this.settings(system), ...rest } = options
    const tasks = backlogs.map(({ database, ...backlog }) => ({ ...backlog, url: database.url }))
    const answer = await measure({ role, system, backlogs: tasks, settings, ...rest })
    if (system === ours && answer.runs.some(({ repeats = 0 }) => repeats > 0)) {
      throw new Error(`${system} delivered an event twice: ${JSON.stringify(answer.runs)}`)
    }
    if (role === 'drain') await this.check(system, backlogs.at(-1))
    return { ...answer.runs.at(-1), runs: answer.runs, rssMb: answer.rssMb }
  }

  async check(system, { database, events, passed = events, subscriptions = 1 }) {
    const { check } = await describeSystem(system)
    await database.ask((pool) => check(pool, passed, subscriptions))
  }

  /** Drains a backlog in a process that has drained a small one before. */
  async drainWarm(system, database, events, options = {}) {
    const warmEvents = Math.min(this.size.warmEvents, events)
    const backlog = { database, events, ...options.backlog }
    if (warmEvents === 0) return this.drain(system, [backlog], options.task)
    return this.with(system, { events: warmEvents }, (warm) => {
      const first = { ...backlog, database: warm, events: warmEvents }
      return this.drain(system, [first, backlog], options.task)
    })
  }
}
