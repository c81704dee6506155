/** Which sink gets which event: one table. The worker serves exactly these subscriptions. */
import { type OutboxEvent, querySource } from 'hermod'
import type { Sink } from 'hermod/sinks'
import { unavailable } from 'hermod/sinks'
import { searchSink } from 'hermod/sinks/search'
import { documentOfRow, rowsOf, searchDocuments } from './documents/queries.ts'
import { workspaceReaction, workspaceSubscription } from './documents/workspace/sink.ts'
import { consequences, effectOn, type IndexName } from './events.ts'
import type { Platform } from './platform.ts'
import { searchDefinition } from './search-definition.ts'

export interface Reaction {
  readonly subscription: string
  readonly index: IndexName
  readonly types: readonly string[]
  /** The event that makes it read a document again. */
  readonly refresh: string
  /** Published documents never wait behind drafts. */
  readonly priority: number
}

export const reactions: readonly Reaction[] = [
  {
    subscription: 'search-documents',
    index: 'documents',
    priority: 10,
    types: ['document.*'],
    refresh: consequences.refreshDocument.event,
  },
  {
    subscription: 'search-drafts',
    index: 'drafts',
    priority: 0,
    types: ['draft.*', 'document.published'],
    refresh: consequences.refreshDraft.event,
  },
]

/** Ensures the indexes and declares the subscriptions; before a worker starts. */
export async function installReactions(platform: Platform): Promise<void> {
  for (const reaction of reactions) await install(platform, reaction)
  platform.outbox.subscribe(workspaceSubscription, workspaceReaction(platform))
}

async function install(platform: Platform, reaction: Reaction): Promise<void> {
  const { subscription, index, types, priority, refresh } = reaction
  const ensure = ensureOnce(platform, index)
  platform.outbox.index(index, {
    engine: platform.search,
    definition: searchDefinition,
    subscription,
    source: querySource({ name: index, query: rowsOf(index), map: documentOfRow }),
    refresh: { type: refresh, aggregate: 'document' },
  })
  platform.outbox.subscribe(subscription, {
    revision: 1,
    types,
    priority,
    coalesce: 'latest',
    from: 'beginning',
    batch: { count: 200 },
    // On few cores, more and smaller calls cost more than they gain; more workers help.
    inFlightMax: 1,
    sink: ensuring(sinkOf(platform, index), ensure),
    load: (events) => loadCurrent(platform, index, events),
    loads: 'references',
  })
  // If the engine is down now, the server still starts: the sink ensures the index later.
  await ensure().catch(({ message }: Error) => {
    platform.log.warn({ code: 'search.unavailable', index, detail: message })
  })
}

function sinkOf({ search }: Platform, index: IndexName): Sink {
  return searchSink(search, {
    index,
    operation: ({ type }) => {
      const effect = effectOn(index, type)
      return effect === 'index' ? 'upsert' : (effect ?? 'skip')
    },
  })
}

function loadCurrent({ pool }: Platform, index: IndexName, events: readonly OutboxEvent[]) {
  const ids = events.map(({ aggregateId }) => aggregateId)
  return searchDocuments(pool, index, ids)
}

/** After a success it is not called again; until then every call tries. */
function ensureOnce({ search, log }: Platform, index: IndexName): () => Promise<void> {
  let ensured: Promise<void> | undefined
  const work = async () => {
    const { state } = await search.ensureIndex(index, searchDefinition)
    if (state === 'rebuild-needed') {
      const detail = `the index goes on as it was declared before; run: hermod rebuild ${index}`
      log.warn({ code: 'search.rebuild_needed', index, detail })
    }
  }
  return () => {
    ensured ??= work().catch((error) => {
      ensured = undefined
      throw error
    })
    return ensured
  }
}

/** The sink with all it has (poll() and the tables it writes too): only deliver() and probe() ensure the index first. */
function ensuring(sink: Sink, ensure: () => Promise<void>): Sink {
  const ensured: Pick<Sink, 'deliver' | 'probe'> = {
    deliver: async (events, context) => {
      const problem = await ensure().then(
        () => undefined,
        ({ message }: Error) => message,
      )
      if (problem === undefined) return sink.deliver(events, context)
      return events.map(() => unavailable({ message: problem }))
    },
    probe: async (context) => {
      await ensure()
      await sink.probe?.(context)
    },
  }
  const parts = { ...Object.getOwnPropertyDescriptors(sink), ...Object.getOwnPropertyDescriptors(ensured) }
  return Object.defineProperties({}, parts) as Sink
}
