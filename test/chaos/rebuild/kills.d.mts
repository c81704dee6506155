// The types of kills.mjs, for its test.

export const phases: readonly string[]

export interface Parts {
  readonly hermod: unknown
  readonly postgresSearch: unknown
  /** Of the built engine. */
  readonly engineUrl: string
}

export interface Found {
  readonly kills: number
  readonly rebuilds: number
  readonly drift: number
  readonly reads: number
  /** Of the rows that existed the whole time; below 1, a search has missed some. */
  readonly fewestHits: number
  readonly problems: readonly string[]
  readonly killsPerPhase: Readonly<Record<string, number>>
  readonly edits: number
}

export function prepare(parts: Parts, stage: { pool: unknown; rows: number }): Promise<void>

export class Kills {
  constructor(
    parts: Parts,
    options: {
      pool: unknown
      url: string
      rows: number
      perSecond: number
      wanted: number
      leaseMs: number
      random: () => number
      expire?: boolean
      rebuildsMax?: number
      only?: readonly string[]
    },
  )
  run(): Promise<Found>
}
