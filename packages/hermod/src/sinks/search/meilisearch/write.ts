/**
 * Upserts and deletions in every generation. Meilisearch knows no versions, so those that are there
 * are read right before the write, deletions are remembered in an index of their own, and what this
 * process has under way is known to it. Between processes it is the lane that keeps order.
 */
import { delivered, type Outcome, type Parked, superseded } from '../../sink.ts'
import type { Call, Deletion, Upsert } from '../engine.ts'
import { hourly, newestOf, refused } from '../items.ts'
import type { Destination, Send } from '../shell.ts'
import { worstOf } from '../worst-outcome.ts'
import { WriteTurns } from '../write-turns.ts'
import type { MeilisearchApi } from './api.ts'
import { type DocumentLine, goneLine, idOf, lineOf, placeOf, primaryKeyOf, versionOf } from './document.ts'
import { outcomeOfMeilisearch } from './outcomes.ts'
import type { PendingVersions } from './pending.ts'
import type { MeilisearchGeneration, Registry } from './registry.ts'
import { goneAtField, keyField, placeField, primaryKey, versionField } from './schema.ts'
import type { Suspects } from './suspects.ts'
import { parkedCall, type Tasks } from './tasks.ts'

type Item = { readonly id: string; readonly version: bigint }

/** The items at one place: each has a known outcome, or is in one of the tasks. */
interface Sent {
  readonly outcomes: readonly (Outcome | undefined)[]
  readonly tasks: readonly number[]
  readonly items: number
}

interface WriterParts {
  readonly tasks: Tasks
  readonly pending: PendingVersions
  readonly suspects: Suspects
  readonly registry: Registry
  readonly tombstonesMs: number
}

type To = Destination<MeilisearchGeneration>

export class MeilisearchWriter {
  readonly #api: MeilisearchApi
  readonly #tasks: Tasks
  readonly #pending: PendingVersions
  readonly #suspects: Suspects
  readonly #registry: Registry
  readonly #tombstonesMs: number
  readonly #turns = new WriteTurns()
  readonly #purgeDue = hourly()

  constructor(api: MeilisearchApi, { tasks, pending, suspects, registry, tombstonesMs }: WriterParts) {
    this.#api = api
    this.#tasks = tasks
    this.#pending = pending
    this.#suspects = suspects
    this.#registry = registry
    this.#tombstonesMs = tombstonesMs
  }

  upserting(documents: readonly Upsert[]): Send<MeilisearchGeneration> {
    return (to) =>
      this.#write(documents, to, (goneUid) =>
        Promise.all(to.targets.map((target) => this.#upsertInto(goneUid, target, documents, to.call))),
      )
  }

  deleting(documents: readonly Deletion[]): Send<MeilisearchGeneration> {
    return (to) =>
      this.#write(documents, to, async (goneUid) => {
        const lines = documents.map((one) => goneLine(one, Date.now()))
        const newest = newestLines(lines)
        const gone = await this.#remember(goneUid, newest, to.call)
        const places = await Promise.all(
          to.targets.map((target) => this.#deleteFrom(target, { lines, newest, gone }, to.call)),
        )
        return places.map((sent) => ({ ...sent, tasks: [...gone.tasks, ...sent.tasks] }))
      })
  }

  /** Writers of the same documents enqueue in order; they wait for the tasks at the same time. */
  async #write(
    items: readonly Item[],
    { index, park, call }: To,
    send: (goneUid: string) => Promise<readonly Sent[]>,
  ): Promise<readonly Outcome[] | Parked> {
    const goneUid = this.#registry.goneUid(index)
    const sent = await this.#turns.run(
      items.map(({ id }) => id),
      () => send(goneUid),
    )
    if (this.#purgeDue()) this.#purge(goneUid).catch(() => {})
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
    goneUid: string,
    { uid, definition }: MeilisearchGeneration,
    documents: readonly Upsert[],
    call: Call,
  ): Promise<Sent> {
    const lines = documents.map((one) => lineOf(definition, one))
    const newest = newestLines(lines)
    const [there, gone] = await Promise.all([this.#versions(uid, newest, call), this.#versions(goneUid, newest, call)])
    const newer = newest.filter(({ id, version }) => isNewer(version, there.get(id), gone.get(id)))
    const tasks = newer.length === 0 ? [] : [await this.#add(uid, newer, call)]
    return { outcomes: outcomesOf(lines, newer), tasks, items: newer.length }
  }

  /** Before anything is deleted, so that a late upsert finds the tombstone. */
  async #remember(goneUid: string, newest: readonly DocumentLine[], call: Call) {
    const versions = await this.#versions(goneUid, newest, call)
    const newer = newest.filter(({ id, version }) => isNewer(version, versions.get(id)))
    return { versions, tasks: newer.length === 0 ? [] : [await this.#add(goneUid, newer, call)] }
  }

  async #deleteFrom({ uid }: MeilisearchGeneration, { lines, newest, gone }: Deleting, call: Call): Promise<Sent> {
    const there = await this.#versions(uid, newest, call)
    const newer = newest.filter(({ id, version }) => {
      // The same deletion again: the first one may have stopped between its two steps.
      const deleted = gone.versions.get(id)
      return isNewer(version, there.get(id)) && (deleted === undefined || deleted <= version)
    })
    if (newer.length === 0) return { outcomes: outcomesOf(lines, newer), tasks: [], items: 0 }
    const ids = newer.map(({ id }) => primaryKeyOf(id))
    await this.#separate(uid, call)
    const task = await this.#api.deleteDocuments(uid, ids, call)
    this.#pending.note(uid, task, newer)
    return { outcomes: outcomesOf(lines, newer), tasks: [task], items: newer.length }
  }

  async #add(uid: string, lines: readonly DocumentLine[], call: Call): Promise<number> {
    const ndjson = lines.map(({ line }) => line).join('\n')
    await this.#separate(uid, call)
    const task = await this.#api.addDocuments(uid, ndjson, primaryKey, call)
    this.#pending.note(uid, task, lines)
    return task
  }

  /** From the task before it, while one of them may hold a document that fails all it is merged with. */
  async #separate(uid: string, call: Call): Promise<void> {
    if (this.#suspects.has(uid)) await this.#api.separate(uid, `${placeField} < 0`, call)
  }

  /** Includes newer versions in flight, which cannot be read yet. */
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
      // The same version is sent again: it is not known yet whether the first one succeeds.
      if (underWay !== undefined && underWay > version) versions.set(id, underWay)
    }
    return versions
  }

  /** Removes old deletions: no upsert can be that late. */
  async #purge(goneUid: string): Promise<void> {
    const filter = `${goneAtField} < ${Date.now() - this.#tombstonesMs}`
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

function newestLines(lines: readonly (DocumentLine | string)[]): DocumentLine[] {
  return [...newestOf(lines.filter((line) => typeof line !== 'string')).values()]
}

function outcomesOf(lines: readonly (DocumentLine | string)[], sent: readonly DocumentLine[]) {
  const going = new Set(sent)
  return lines.map((line) => {
    if (typeof line === 'string') return refused(line)
    return going.has(line) ? undefined : superseded()
  })
}
