/**
 * Writes to one index of Algolia. A batch is accepted or refused as a whole: the record the service
 * names is rejected and the rest is sent again; what it names none for is halved by the outbox.
 */
import { delivered, type Outcome, rejected, superseded } from '../../sink.ts'
import type { Call } from '../engine.ts'
import { type AlgoliaApi, AlgoliaFailure } from './api.ts'
import { outcomeOfAlgoliaError } from './outcomes.ts'
import type { Entry } from './record.ts'
import type { TaskRef } from './tasks.ts'

export const itemsMax = 1_000
export const bytesMax = 8 * 1024 * 1024
/** So many records of one batch are rejected by name before it is halved instead. */
const namedMax = 20

export interface Sent {
  /** In the order given; undefined: accepted, and seen when the tasks are published. */
  readonly outcomes: readonly (Outcome | undefined)[]
  readonly tasks: readonly TaskRef[]
}

export async function send(api: AlgoliaApi, indexName: string, entries: readonly Entry[], call: Call): Promise<Sent> {
  const newest = newestOf(entries)
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
export function published({ outcomes }: Sent): Outcome[] {
  return outcomes.map((outcome) => outcome ?? delivered())
}

const refused = (message: string) => rejected({ code: 'DOCUMENT_INVALID', message })

/** Of an id that comes twice, the highest version. */
function newestOf(entries: readonly Entry[]): Map<string, Entry> {
  const newest = new Map<string, Entry>()
  for (const entry of entries) {
    if (entry.request === undefined) continue
    const other = newest.get(entry.id)
    if (other === undefined || other.version < entry.version) newest.set(entry.id, entry)
  }
  return newest
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
