/** What a check of the doctor reports: severity, message, fix. */
import type { Database } from '../database.ts'

export type Level = 'ok' | 'warn' | 'fail'

export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly level: Level
  readonly says: string
  readonly fix?: string
}

/** What a check found; nothing = ok. */
export interface Finding {
  readonly level: Level
  readonly says: string
  readonly fix?: string | undefined
}

export interface DoctorOptions {
  /** Audit the whole log, not only what was numbered since the last audit. */
  readonly full?: boolean
  /** How many days events are kept: `retention.eventDays` of the workers. 7 when left out, as there. */
  readonly eventDays?: number
}

export interface Examination {
  readonly name: string
  look(db: Database, options: DoctorOptions): Promise<Finding>
}

export const well = (says: string): Finding => ({ level: 'ok', says })
export const warn = (says: string, fix: string): Finding => ({ level: 'warn', says, fix })
export const bad = (says: string, fix: string): Finding => ({ level: 'fail', says, fix })
