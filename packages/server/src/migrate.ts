/** Brings the schema `hermod` (people, documents, access) up to date; the engine's comes first. */
import { applyMigrations, assertApplied, type NumberedSql } from 'hermod'
import type { Pool } from 'pg'

export const serverSchema: NumberedSql = {
  folder: new URL('../migrations/', import.meta.url),
  schema: 'hermod',
  lock: 4841297203,
}

export function migrateServer(pool: Pool): Promise<string[]> {
  return applyMigrations(pool, serverSchema)
}

/** Refuses a schema that is older or newer than this server, without changing anything. */
export function assertServerMigrated(pool: Pool): Promise<void> {
  return assertApplied(pool, serverSchema)
}
