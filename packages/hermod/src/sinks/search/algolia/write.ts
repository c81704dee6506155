/**
 * Writes to one index of Algolia. A batch is accepted or refused as a whole: the record the service
 * names is rejected and the rest is sent again; what it names none for is halved by the outbox.
 */
import { delivered, type Outcome, type Parked, superseded } from '../../sink.ts'
import type { Call, Deletion, Upsert } from '../engine.ts'
import { hourly, newestOf, refused } from '../items.ts'
import type { Send } from '../shell.ts'
import { isGood, worstOf } from '../worst-outcome.ts'
import { type AlgoliaApi, AlgoliaFailure } from './api.ts'
import { deletionEntry, type Entry, upsertEntry } from './document.ts'
import { outcomeOfAlgoliaError } from './outcomes.ts'
import type { AlgoliaGeneration } from './state.ts'
import { handleOf, type TaskRef, waitForTasks } from './tasks.ts'

export const itemsMax = 1_000
export const bytesMax = 8 * 1024 * 1024
/** Most records of one batch that are rejected by name; then the batch is halved instead. */
const namedMax = 20

interface Sent {
  /** In the order given; undefined: accepted, and seen when the tasks are published. */
  readonly outcomes: readonly (Outcome | undefined)[]
  readonly tasks: readonly TaskRef[]
}

export class AlgoliaWriter {
  readonly #api: AlgoliaApi
  readonly #recordBytesMax: number
  readonly #tombstonesMs: number
  readonly #purgeDue = hourly()

  constructor(
    api: AlgoliaApi,
    { recordBytesMax, tombstonesMs }: { readonly recordBytesMax: number; readonly tombstonesMs: number },
  ) {
    this.#api = api
    this.#recordBytesMax = recordBytesMax
    this.#tombstonesMs = tombstonesMs
  }

  upserting(documents: readonly Upsert[]): Send<AlgoliaGeneration> {
    return this.#sending(({ definition }) => documents.map((one) => upsertEntry(definition, one, this.#recordBytesMax)))
  }

  deleting(documents: readonly Deletion[]): Send<AlgoliaGeneration> {
    const nowMs = Date.now()
    const entries = documents.map((one) => deletionEntry(one, nowMs, this.#recordBytesMax))
    return this.#sending(
      () => entries,
      (targets) => this.#purge(targets),
    )
  }

  #sending(
    entriesFor: (generation: AlgoliaGeneration) => readonly Entry[],
    after?: (targets: readonly AlgoliaGeneration[]) => Promise<void>,
  ): Send<AlgoliaGeneration> {
    return async ({ targets, park, call }) => {
      const sent = await Promise.all(targets.map((one) => send(this.#api, one.indexName, entriesFor(one), call)))
      await after?.(targets)
      return this.#settle(sent, park, call)
    }
  }

  /** Parked only as a whole: what failed already is told at once. */
  async #settle(sent: readonly Sent[], park: boolean, call: Call): Promise<readonly Outcome[] | Parked> {
    const tasks = sent.flatMap((one) => one.tasks)
    const outcomes = worstOf(sent.map(published))
    const handle = park && outcomes.every(isGood) && tasks.length > 0 ? handleOf(tasks) : undefined
    if (handle !== undefined) return { parked: handle }
    await waitForTasks(this.#api, tasks, call)
    return outcomes
  }

  /** By filter, so that a document that came back meanwhile stays. */
  async #purge(targets: readonly AlgoliaGeneration[]): Promise<void> {
    if (!this.#purgeDue()) return
    const numericFilters = ['deletedAt>0', `deletedAt<${Date.now() - this.#tombstonesMs}`]
    for (const { indexName } of targets) {
      await this.#api.deleteBy(indexName, { numericFilters }).catch(() => {})
    }
  }
}

async function send(api: AlgoliaApi, indexName: string, entries: readonly Entry[], call: Call): Promise<Sent> {
  const newest = newestOf(entries.filter(({ request }) => request !== undefined))
  const settled = new Map<Entry, Outcome>()
  const tasks: TaskRef[] = []
  for (const part of parts([...newest.values()])) {
    const taskID = await sendPart(api, indexName, part, { call, settled })
    if (taskID !== undefined) tasks.push([indexName, taskID])
  }
  const outcomes = entries.map((entry) => {
    if (entry.problem !== undefined) return refused(entry.problem)
    return newest.get(entry.id) === entry ? settled.get(entry) : superseded()
  })
  return { outcomes, tasks }
}

/** What was sent is delivered once its tasks are published. */
function published({ outcomes }: Sent): Outcome[] {
  return outcomes.map((outcome) => outcome ?? delivered())
}

function parts(entries: readonly Entry[]): Entry[][] {
  const all: Entry[][] = []
  let bytes = 0
  for (const entry of entries) {
    const size = Buffer.byteLength(entry.request ?? '') + 1
    const last = all.at(-1)
    if (last === undefined || last.length === itemsMax || bytes + size > bytesMax) {
      all.push([entry])
      bytes = size
    } else {
      last.push(entry)
      bytes += size
    }
  }
  return all
}

async function sendPart(
  api: AlgoliaApi,
  indexName: string,
  part: readonly Entry[],
  { call, settled }: { call: Call; settled: Map<Entry, Outcome> },
): Promise<number | undefined> {
  let rest = part
  for (let named = 0; rest.length > 0; named++) {
    const body = `{"requests":[${rest.map(({ request }) => request).join(',')}]}`
    try {
      return (await api.batch(indexName, body, call)).taskID
    } catch (error) {
      const culprit = named < namedMax ? culpritOf(error, rest) : undefined
      if (culprit === undefined) {
        const outcome = outcomeOfAlgoliaError(error, rest.length)
        for (const entry of rest) settled.set(entry, outcome)
        return undefined
      }
      settled.set(culprit, outcomeOfAlgoliaError(error, 1))
      rest = rest.filter((entry) => entry !== culprit)
    }
  }
  return undefined
}

/** `position` counts from the first record of the batch; the id must agree when it is given. */
function culpritOf(error: unknown, entries: readonly Entry[]): Entry | undefined {
  if (!(error instanceof AlgoliaFailure) || error.status !== 400) return undefined
  const { position, objectID } = error.details
  const entry = position === undefined ? undefined : entries[position]
  return objectID === undefined || entry?.id === objectID ? entry : undefined
}
