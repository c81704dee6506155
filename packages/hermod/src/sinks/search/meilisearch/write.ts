/**
 * Upserts and deletions in every generation. Meilisearch knows no versions, so those that are there
 * are read right before the write, deletions are remembered in an index of their own, and what this
 * process has under way is known to it. Between processes it is the lane that keeps order.
 */
import { delivered, type Outcome, type Parked, rejected, superseded } from '../../sink.ts'
import type { Call, Deletion, Upsert, Write } from '../engine.ts'
import { worstOf } from '../worst-outcome.ts'
import { WriteTurns } from '../write-turns.ts'
import type { MeilisearchApi } from './api.ts'
import { type DocumentLine, goneLine, idOf, lineOf, placeOf, primaryKeyOf, versionOf } from './document.ts'
import type { MeilisearchGeneration } from './generations.ts'
import { outcomeOfMeilisearch } from './outcomes.ts'
import type { PendingVersions } from './pending.ts'
import { goneAtField, keyField, placeField, primaryKey, versionField } from './settings.ts'
import { parkedCall, type Tasks } from './tasks.ts'

type Item = { readonly id: string; readonly version: bigint }

/** Where a call writes, and what it may wait for. */
export interface Destination {
  readonly targets: readonly MeilisearchGeneration[]
  readonly goneUid: string
}

/** What becomes of each item at one place: an outcome known already, or it is on its way. */
interface Sent {
  readonly outcomes: readonly (Outcome | undefined)[]
  readonly tasks: readonly number[]
  readonly items: number
}

export interface WriteOptions extends Write {
  readonly park?: boolean
}

export class Writer {
  readonly #api: MeilisearchApi
  readonly #tasks: Tasks
  readonly #pending: PendingVersions
  readonly #turns = new WriteTurns()

  constructor(api: MeilisearchApi, tasks: Tasks, pending: PendingVersions) {
    this.#api = api
    this.#tasks = tasks
    this.#pending = pending
  }

  upsert(to: Destination, documents: readonly Upsert[], options: WriteOptions) {
    return this.#write(documents, options, (call) =>
      Promise.all(to.targets.map((target) => this.#upsertInto(to, target, documents, call))),
    )
  }

  delete(to: Destination, documents: readonly Deletion[], options: WriteOptions) {
    return this.#write(documents, options, async (call) => {
      const lines = documents.map((one) => goneLine(one, Date.now()))
      const newest = newestOf(lines)
      const gone = await this.#remember(to, newest, call)
      const places = await Promise.all(
        to.targets.map((target) => this.#deleteFrom(target, { lines, newest, gone }, call)),
      )
      return places.map((sent) => ({ ...sent, tasks: [...gone.tasks, ...sent.tasks] }))
    })
  }

  /** Writers of the same documents enqueue in the order they came; the waiting is done together. */
  async #write(
    items: readonly Item[],
    { park = false, signal }: WriteOptions,
    send: (call: Call) => Promise<readonly Sent[]>,
  ): Promise<readonly Outcome[] | Parked> {
    const call = signal === undefined ? {} : { signal }
    const sent = await this.#turns.run(
      items.map(({ id }) => id),
      () => send(call),
    )
    const tasks = [...new Set(sent.flatMap((one) => one.tasks))]
    const known = sent.every(({ outcomes }) => outcomes.every((one) => one?.outcome !== 'rejected'))
    if (park && known && tasks.length > 0) {
      return parkedCall({ tasks, items: items.length, only: onlyKey(items) })
    }
    return this.#settle(sent, onlyKey(items), call)
  }

  async #settle(sent: readonly Sent[], only: string | undefined, call: Call): Promise<readonly Outcome[]> {
    const outcomes = await Promise.all(
      sent.map(async (one) => {
        const errors = one.tasks.length === 0 ? [] : await this.#tasks.results(one.tasks, call)
        const error = errors.find((found) => found !== undefined)
        const ended = error === undefined ? delivered() : outcomeOfMeilisearch(error, one.items, only)
        return one.outcomes.map((outcome) => outcome ?? ended)
      }),
    )
    return worstOf(outcomes)
  }

  async #upsertInto(
    { goneUid }: Destination,
    { uid, definition }: MeilisearchGeneration,
    documents: readonly Upsert[],
    call: Call,
  ): Promise<Sent> {
    const lines = documents.map((one) => lineOf(definition, one))
    const newest = newestOf(lines)
    const [there, gone] = await Promise.all([this.#versions(uid, newest, call), this.#versions(goneUid, newest, call)])
    const newer = newest.filter(({ id, version }) => isNewer(version, there.get(id), gone.get(id)))
    const tasks = newer.length === 0 ? [] : [await this.#add(uid, newer, call)]
    return { outcomes: outcomesOf(lines, newer), tasks, items: newer.length }
  }

  /** Before anything is deleted: a late upsert must find it. */
  async #remember({ goneUid }: Destination, newest: readonly DocumentLine[], call: Call) {
    const versions = await this.#versions(goneUid, newest, call)
    const newer = newest.filter(({ id, version }) => isNewer(version, versions.get(id)))
    return { versions, tasks: newer.length === 0 ? [] : [await this.#add(goneUid, newer, call)] }
  }

  async #deleteFrom({ uid }: MeilisearchGeneration, { lines, newest, gone }: Deleting, call: Call): Promise<Sent> {
    const there = await this.#versions(uid, newest, call)
    const newer = newest.filter(({ id, version }) => {
      // The same deletion again: the one before may have been cut off between its two steps.
      const deleted = gone.versions.get(id)
      return isNewer(version, there.get(id)) && (deleted === undefined || deleted <= version)
    })
    if (newer.length === 0) return { outcomes: outcomesOf(lines, newer), tasks: [], items: 0 }
    const ids = newer.map(({ id }) => primaryKeyOf(id))
    const task = await this.#api.deleteDocuments(uid, ids, call)
    this.#pending.note(uid, task, newer)
    return { outcomes: outcomesOf(lines, newer), tasks: [task], items: newer.length }
  }

  async #add(uid: string, lines: readonly DocumentLine[], call: Call): Promise<number> {
    const ndjson = lines.map(({ line }) => line).join('\n')
    const task = await this.#api.addDocuments(uid, ndjson, primaryKey, call)
    this.#pending.note(uid, task, lines)
    return task
  }

  /** Newer ones that are under way cannot be read yet. */
  async #versions(uid: string, items: readonly Item[], call: Call): Promise<Map<string, bigint>> {
    const versions = new Map<string, bigint>()
    if (items.length === 0) return versions
    const places = items.map(({ id }) => placeOf(id)).join(', ')
    const found = await this.#api.documents(
      uid,
      {
        filter: `${placeField} IN [${places}]`,
        limit: items.length * 2,
        fields: [keyField, versionField],
      },
      call,
    )
    for (const document of found) versions.set(idOf(document), versionOf(document))
    for (const { id, version } of items) {
      const underWay = this.#pending.versionOf(uid, id)
      // The same again is sent again: nobody knows yet whether the first one succeeds.
      if (underWay !== undefined && underWay > version) versions.set(id, underWay)
    }
    return versions
  }

  /** Deletions nobody can come late for any more. */
  async purge(goneUid: string, olderThanMs: number): Promise<void> {
    const filter = `${goneAtField} < ${Date.now() - olderThanMs}`
    const found = await this.#api.documents(goneUid, { filter, limit: 5_000, fields: [primaryKey] })
    const ids = found.map((document) => String(document[primaryKey]))
    if (ids.length > 0) await this.#api.deleteDocuments(goneUid, ids)
  }
}

const onlyKey = ([first, ...others]: readonly Item[]) =>
  first === undefined || others.length > 0 ? undefined : primaryKeyOf(first.id)

interface Deleting {
  readonly lines: readonly (DocumentLine | string)[]
  readonly newest: readonly DocumentLine[]
  readonly gone: { readonly versions: ReadonlyMap<string, bigint> }
}

function isNewer(version: bigint, ...others: readonly (bigint | undefined)[]): boolean {
  return others.every((other) => other === undefined || version > other)
}

/** No id twice in one call: of several, the highest version. */
function newestOf(lines: readonly (DocumentLine | string)[]): DocumentLine[] {
  const newest = new Map<string, DocumentLine>()
  for (const line of lines) {
    if (typeof line === 'string') continue
    const other = newest.get(line.id)
    if (other === undefined || other.version < line.version) newest.set(line.id, line)
  }
  return [...newest.values()]
}

function outcomesOf(lines: readonly (DocumentLine | string)[], sent: readonly DocumentLine[]) {
  const going = new Set(sent)
  return lines.map((line) => {
    if (typeof line === 'string') return rejected({ code: 'DOCUMENT_INVALID', message: line })
    return going.has(line) ? undefined : superseded()
  })
}
