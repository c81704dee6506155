/**
 * The names behind the codes of kinds in the log, for one epoch. A failover may lose codes and assign them to other kinds. So
 * names of another epoch are dropped, and a batch is named only by names of its own epoch.
 */
import { type Database, select } from '../database.ts'

const LEARN = `select k.code::text, k.type, k.aggregate_type, s.pos::text as head
  from (select pos from outbox.step order by id desc limit 1) s left join outbox.kind k on k.code > 0`

/** Event type and aggregate type by code. Entries keep the map they were read with. */
export type Names = ReadonlyMap<string, readonly [type: string, aggregateType: string]>

/** The epoch is the upper half of every position. */
export const epochOf = (position: bigint): bigint => position >> 32n

/** Two statements were answered in different epochs, perhaps by different servers. Counts as a lost connection. */
class EpochChanged extends Error {
  readonly code = '08006'

  constructor() {
    super('the database has changed to another epoch between two statements')
  }
}

export class Kinds {
  #names: Names = new Map()
  #epoch: bigint | undefined

  /** As of the last read. */
  get names(): Names {
    return this.#names
  }

  /** For a read that saw this head and codes up to `newest`. Codes ascend: one above those we know is new. */
  async namesFor(db: Database, head: bigint, newest: number): Promise<Names> {
    const epoch = epochOf(head)
    if (epoch !== this.#epoch) this.#names = new Map()
    this.#epoch = epoch
    if (newest <= this.#names.size) return this.#names
    const names = await learn(db, epoch)
    if (newest > names.size) throw new EpochChanged()
    // Another loop may have seen a newer epoch meanwhile.
    if (epoch === this.#epoch) this.#names = names
    return names
  }
}

async function learn(db: Database, epoch: bigint): Promise<Names> {
  const rows = await select(db, LEARN)
  if (rows.some(({ head }) => epochOf(BigInt(head as string)) !== epoch)) throw new EpochChanged()
  const known = rows.filter(({ code }) => code !== null)
  return new Map(known.map((row) => [row.code as string, [row.type as string, row.aggregate_type as string]]))
}
