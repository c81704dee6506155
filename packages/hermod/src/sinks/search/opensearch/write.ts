/**
 * Upserts and deletions as a bulk call to each generation. Those the answer names are settled; a generation
 * that was dropped meanwhile has no say.
 */
import { broken, type Outcome } from '../../sink.ts'
import type { Send } from '../shell.ts'
import { worstOf } from '../worst-outcome.ts'
import { type ApiCall, type BulkAnswer, MISSING, type OpenSearchApi, OpenSearchError } from './api.ts'
import type { Action, Bulk, Entry } from './document.ts'
import type { OpenSearchGeneration } from './generations.ts'
import { outcomeOfFailure, outcomeOfItem } from './outcomes.ts'

/** An outcome per document of one generation; `gone`: the generation is not there any more. */
export interface Written {
  readonly outcomes: readonly Outcome[]
  readonly gone: boolean
}

/** Called a second time, it writes only to generations it has not written to. */
export function sending(api: OpenSearchApi, bulk: Bulk): Send<OpenSearchGeneration> {
  const written = new Map<string, Written>()
  let calls = 0
  return async ({ targets, call }) => {
    calls++
    await Promise.all(
      targets.map(async (one) => {
        if (!written.has(one.id)) written.set(one.id, await writeTo(api, one, bulk, call))
      }),
    )
    const all = targets.flatMap(({ id }) => written.get(id) ?? [])
    const gone = all.some((one) => one.gone)
    if (gone && calls === 1)
      throw new OpenSearchError(404, { type: MISSING, reason: 'a generation was dropped meanwhile' })
    return worstOf(all.map(({ outcomes }) => outcomes))
  }
}

async function writeTo(
  api: OpenSearchApi,
  { alias }: OpenSearchGeneration,
  { action, entries }: Bulk,
  call: ApiCall,
): Promise<Written> {
  const sent = entries.filter(({ lines }) => lines !== undefined)
  if (sent.length === 0) return { outcomes: entries.map(refusedOf), gone: false }
  try {
    const answer = await api.bulk(alias, sent.map(({ lines }) => lines).join(''), call)
    return settle(action, entries, sent, answer)
  } catch (error) {
    const outcome = outcomeOfFailure(error, sent.length)
    const gone = outcome.code === MISSING
    return { outcomes: entries.map((entry) => entry.refused ?? outcome), gone }
  }
}

/** Those that are named settle; whatever is missing, more or foreign settles nothing. */
function settle(action: Action, entries: readonly Entry[], sent: readonly Entry[], { items }: BulkAnswer): Written {
  const settled = new Map<Entry, Outcome>()
  sent.forEach((entry, at) => {
    const item = Array.isArray(items) ? items[at]?.[action] : undefined
    const named = item?._id === entry.id && Number.isInteger(item.status)
    if (named) settled.set(entry, outcomeOfItem(action, item))
  })
  const outcomes = entries.map(
    (entry) => entry.refused ?? settled.get(entry) ?? broken('got no answer for this document'),
  )
  return { outcomes, gone: outcomes.some(({ code }) => code === MISSING) }
}

const refusedOf = ({ refused: outcome }: Entry) => outcome as Outcome
