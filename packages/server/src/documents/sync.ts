/**
 * Is it searchable yet, and if not, why: one change followed from the audit trail to its event, to
 * every subscription and attempt, and to what the indexes hold.
 */
import type { EventState, EventStory, SubscriptionStats } from 'hermod'
import type { StoredDocument } from 'hermod/sinks/search'
import { consequences, type DocumentCommand, effectOn, type IndexName, indexNames } from '../events.ts'
import { statsFor } from '../health-words.ts'
import type { Platform } from '../platform.ts'
import type { LogEntry } from './audit/queries.ts'

/** One index, compared with what this change wants of it. */
export interface IndexState {
  readonly index: IndexName
  readonly wanted: 'present' | 'absent'
  /** Null: the engine did not answer. */
  readonly current: boolean | null
  readonly indexedVersion: string | null
  readonly indexedPosition: string | null
  /** Null while it is as wanted. */
  readonly why: string | null
}

export interface SyncState {
  readonly searchable: boolean
  readonly indexes: readonly IndexState[]
  readonly story: EventStory | undefined
  readonly subscriptions: readonly SubscriptionSync[]
  /** One sentence; null when everything is where it belongs. */
  readonly why: string | null
}

/** A story as its reader may hear it. */
function told(story: EventStory | undefined, details: boolean): EventStory | undefined {
  if (story === undefined || details) return story
  return {
    ...story,
    states: story.states.map((state) => ({ ...state, error: null })),
    attempts: story.attempts.map((attempt) => ({ ...attempt, worker: '', error: null })),
  }
}

export interface SubscriptionSync extends EventState {
  readonly health: string | null
  readonly healthWhy: string | null
}

/** Which subscription feeds which index. */
export const subscriptionOf: Readonly<Record<IndexName, string>> = {
  documents: 'search-documents',
  drafts: 'search-drafts',
}

/** `details`: with what drivers said and which workers called; for operators. */
export async function syncOf(
  platform: Platform,
  entry: LogEntry,
  { details }: { readonly details: boolean },
): Promise<SyncState> {
  const story = told(await storyOf(platform, entry), details)
  const held = await Promise.all(indexNames.map((index) => look(platform, index, entry.documentId)))
  const rough = indexNames.map((index, at) => compare(index, entry, story, held[at] as Look, details))
  const waiting = rough.some(({ current }) => current !== true)
  const stats = waiting ? statsFor((await platform.outbox.stats()).subscriptions, details) : []
  const indexes = rough.map((state) => explained(state, entry, story, stats))
  const why = indexes.find((state) => state.why !== null)?.why ?? null
  const subscriptions = (story?.states ?? []).map((state) => withHealth(state, stats))
  return { searchable: !waiting, indexes, story, subscriptions, why }
}

async function storyOf(platform: Platform, { eventId }: LogEntry): Promise<EventStory | undefined> {
  return eventId === null ? undefined : platform.outbox.event(BigInt(eventId))
}

type Look = { readonly stored: StoredDocument | undefined } | { readonly failed: string }

/** Never fails: an engine that does not answer is part of the answer. */
async function look({ search }: Platform, index: IndexName, id: string): Promise<Look> {
  try {
    return { stored: await search.get(index, id, { signal: AbortSignal.timeout(2_000) }) }
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) }
  }
}

/** If a change does not concern an index, the document should not be in it: it is in one index only. */
function wantedIn(index: IndexName, { command }: LogEntry): 'present' | 'absent' {
  const { event } = consequences[command as DocumentCommand]
  return effectOn(index, event) === 'index' ? 'present' : 'absent'
}

function compare(
  index: IndexName,
  entry: LogEntry,
  story: EventStory | undefined,
  found: Look,
  details: boolean,
): IndexState {
  const wanted = wantedIn(index, entry)
  if ('failed' in found) {
    const why = `The search engine does not answer${details ? `: ${found.failed}` : '.'}`
    return { index, wanted, current: null, indexedVersion: null, indexedPosition: null, why }
  }
  const { stored } = found
  const indexedVersion = stored === undefined ? null : String(stored.document.version)
  const indexedPosition = stored === undefined ? null : String(stored.version)
  const current = wanted === 'absent' ? gone(stored, story) : reached(stored, entry, story)
  return { index, wanted, current, indexedVersion, indexedPosition, why: null }
}

/** Absent, or brought back by a later change. */
function gone(stored: StoredDocument | undefined, story: EventStory | undefined): boolean {
  return stored === undefined || isPast(stored, story)
}

/** This version or a later one; by position, which only grows, and by version where events are gone. */
function reached(stored: StoredDocument | undefined, { version }: LogEntry, story: EventStory | undefined): boolean {
  if (stored === undefined) return false
  if (typeof story?.position === 'bigint') return stored.version >= story.position
  return BigInt(String(stored.document.version ?? '0')) >= BigInt(version)
}

function isPast({ version }: StoredDocument, story: EventStory | undefined): boolean {
  return typeof story?.position === 'bigint' && version > story.position
}

function explained(
  state: IndexState,
  entry: LogEntry,
  story: EventStory | undefined,
  stats: readonly SubscriptionStats[],
): IndexState {
  if (state.current === true || state.why !== null) return state
  return { ...state, why: whyNot(state.index, entry, story, stats) }
}

/** What this event waits for on its way to this index, in the words of the outbox. */
function whyNot(
  index: IndexName,
  { eventId }: LogEntry,
  story: EventStory | undefined,
  stats: readonly SubscriptionStats[],
): string {
  const name = subscriptionOf[index]
  if (eventId === null) return 'No event was emitted: the outbox was turned off.'
  const serving = stats.find((one) => one.name === name)
  if (serving === undefined) return `No worker has served ${name} yet.`
  const { health } = serving
  if (health.word !== 'ok') return `${name} is ${health.word}: ${health.why}.`
  if (story === undefined) return 'Its event is past retention; verify the index.'
  const own = story.states.find(({ subscription }) => subscription === name)
  return own === undefined ? unnumbered(serving) : inState(name, own)
}

function unnumbered({ workers, name }: SubscriptionStats): string {
  if (workers === 0) return `No worker is running: ${name} waits.`
  return 'Committed, and about to get its position.'
}

function inState(name: string, state: EventState): string {
  const { attempts, error, nextAttemptAt, blockedBy, reason } = state
  const said = error === null ? '' : `: ${error}`
  switch (state.state) {
    case 'retrying':
      return `${name} failed ${attempts} times${said}; next attempt at ${nextAttemptAt?.toISOString() ?? 'once it can'}.`
    case 'blocked':
      return `${name} waits for position ${blockedBy} of the same document.`
    case 'dead':
      return `${name} gave up after ${attempts} attempts${said}. Retry it once the cause is gone.`
    case 'discarded':
      return `${name} was told to give it up: ${reason ?? 'no reason was kept'}.`
    case 'delivered':
      return `${name} delivered it, and a later change is on its way.`
    default:
      return `${name}: ${state.state}.`
  }
}

function withHealth(state: EventState, stats: readonly SubscriptionStats[]): SubscriptionSync {
  const health = stats.find(({ name }) => name === state.subscription)?.health
  return { ...state, health: health?.word ?? null, healthWhy: health?.why ?? null }
}
