/** What writes of all engines share: one version per document, refusals, and what to show of a document. */
import { type Outcome, rejected } from '../sink.ts'
import type { ResolvedDefinition } from './check-definition.ts'

/** No id twice in one batch: of several, the highest version. */
export function newestOf<T extends { readonly id: string; readonly version: bigint }>(
  items: readonly T[],
): Map<string, T> {
  const newest = new Map<string, T>()
  for (const item of items) {
    const other = newest.get(item.id)
    if (other === undefined || other.version < item.version) newest.set(item.id, item)
  }
  return newest
}

/** The document itself is wrong, before any server was asked. */
export function refused(message: string): Outcome {
  return rejected({ code: 'DOCUMENT_INVALID', message })
}

/** Without the fields that the declaration hides. */
export function displayed(
  { fields }: ResolvedDefinition,
  document: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const hidden = new Set(fields.filter((field) => !field.displayed).map(({ name }) => name))
  return Object.fromEntries(Object.entries(document).filter(([name]) => !hidden.has(name)))
}

const purgeEveryMs = 3_600_000

/** True at the first call, and then once an hour: when to remove old deletions. */
export function hourly(): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = Date.now()
    if (nowMs - lastMs < purgeEveryMs) return false
    lastMs = nowMs
    return true
  }
}
