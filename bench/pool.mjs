/** Connection pools that bear it when their database is dropped while they are being closed. */
import pg from 'pg'

export function openPool(connectionString, max) {
  const pool = new pg.Pool({ connectionString, max })
  pool.on('error', () => {})
  return pool
}
