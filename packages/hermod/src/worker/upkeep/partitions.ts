/**
 * Partitions ahead of need: two free leaves above the number in use, added one at a time by short
 * transactions that never wait for long. Rows that had to land in a default leaf are reported.
 */
import { type Database, select } from '../../database.ts'
import type { Retention } from '../../options.ts'
import { type Listener, notify } from '../../telemetry.ts'

const ADD = 'select outbox.add_ahead($1, $2::numeric) as added'
const STRAYS = 'select rows::text, top::text from outbox.strays()'

/** A leaf above a filled default leaf takes three calls; more than a few leaves at a time are never needed. */
const callsMax = 12

type Days = Pick<Retention, 'eventDays' | 'attemptDays'>

export async function addPartitions(db: Database, days: Days): Promise<string[]> {
  const added: string[] = []
  for (const parent of ['event', 'log', 'attempt'] as const) {
    added.push(...(await addAhead(db, parent, days)))
  }
  return added
}

async function addAhead(db: Database, parent: string, days: Days): Promise<string[]> {
  const kept = Math.max(1, parent === 'attempt' ? days.attemptDays : days.eventDays)
  const added: string[] = []
  for (let call = 0; call < callsMax; call++) {
    const [row] = await select(db, ADD, [parent, kept])
    const name = row?.added ?? undefined
    if (name === undefined || name === 'busy') break
    if (name !== 'again') added.push(name)
  }
  return added
}

/** Warns when rows lie in the default leaf, once each time it grew. */
export class DefaultLeaf {
  #top: string | undefined

  async look(db: Database, listener: Listener): Promise<void> {
    const [row] = await select(db, STRAYS)
    const top = row?.top ?? undefined
    if (top !== undefined && top !== this.#top) {
      const rows = Number(row?.rows)
      notify(listener, 'warning', {
        code: 'HMD_PARTITION_DEFAULT',
        message: `${rows > 10_000 ? 'more than 10000' : rows} events lie in the default partition: upkeep was not there in time`,
        details: { rows, top },
      })
    }
    this.#top = top
  }
}
