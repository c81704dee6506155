/** claim: lease free lanes that have work. Leases run by the database's clock; an idle claim writes nothing. */
import { type Database, select } from '../database.ts'

const CLAIM = `select lane::text, fence::text, pos::text, again_ms::text
  from outbox.claim($1, $2, $3, $4, $5, $6)`

export interface ClaimedLane {
  readonly lane: number
  readonly fence: bigint
  readonly cursor: bigint
  /** After this time the newest states are sent again, because of a late call of the former owner. */
  readonly againMs: number | undefined
}

export interface ClaimOptions {
  readonly lanesMax: number
  readonly leaseMs: number
  /** How long a call of the former owner may still take; null: it cannot do harm. */
  readonly callMs: number | null
}

export async function claim(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  owner: string,
  { lanesMax, leaseMs, callMs }: ClaimOptions,
): Promise<ClaimedLane[]> {
  const { name, revision } = subscription
  const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, leaseMs, callMs])
  return rows.map((row) => ({
    lane: Number(row.lane),
    fence: BigInt(row.fence as string),
    cursor: BigInt(row.pos as string),
    againMs: row.again_ms == null ? undefined : Number(row.again_ms),
  }))
}
