// Runs the engine's migrations into a database, so that test files can clone the result.

import { existsSync } from 'node:fs'
import pg from 'pg'

type Migrate = (pool: pg.Pool) => Promise<unknown>

const source = new URL('../../packages/hermod/src/migrate.ts', import.meta.url)

/** Applies all migrations to the database behind `url`. */
export async function migrateDatabase(url: string): Promise<void> {
  if (!existsSync(source)) return
  const { migrate } = (await import(source.href)) as { migrate: Migrate }
  const pool = new pg.Pool({ connectionString: url, max: 2, application_name: 'hermod-template' })
  try {
    await migrate(pool)
  } finally {
    await pool.end()
  }
}

/** The same server, another database. */
export function withDatabase(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${encodeURIComponent(database)}`
  return other.href
}
