/**
 * Connection pools that bear it when their database is dropped while they are being closed. All of them may pipeline:
 * whoever does not wait for an answer before the next statement has the use of it.
 */
import pg from 'pg'

export function openPool(connectionString, max) {
  const pool = new pg.Pool({ connectionString, max, pipeline: true })
  pool.on('error', () => {})
  return pool
}
