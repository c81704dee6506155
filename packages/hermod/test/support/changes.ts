// What the outage tests write: documents through the outbox, and what an index must hold afterwards.

import type { Outbox } from '../../src/index.ts'

/** Without a document: it is deleted. */
export type Change = [id: number, document: object | undefined]

/** In one transaction; `expected` follows. */
export async function writeChanges(
  outbox: Outbox,
  expected: Map<string, object>,
  changes: readonly Change[],
): Promise<void> {
  await outbox.transaction((tx) =>
    outbox.emit(
      tx,
      changes.map(([id, document]) => ({
        type: document === undefined ? 'document.deleted' : 'document.updated',
        aggregate: ['document', id],
        ...(document !== undefined && { payload: document }),
      })),
    ),
  )
  for (const [id, document] of changes) {
    if (document === undefined) expected.delete(`${id}`)
    else expected.set(`${id}`, document)
  }
}

/** Documents `from` to `to` as of a round. */
export const states = (from: number, to: number, round: number): Change[] =>
  Array.from({ length: to - from }, (_, at) => [
    from + at,
    { title: `Document ${from + at} as of ${round}`, pages: round },
  ])
