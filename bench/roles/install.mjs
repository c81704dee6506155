/** Installs a system into an empty database, beside the application's own table. */
import { openPool } from '../pool.mjs'

export const documents = 10_000

export async function play(system, { url }) {
  await system.install(url)
  const pool = openPool(url, 1)
  await pool.query('create schema app')
  await pool.query('create table app.document (id int primary key, revision int not null, title text)')
  await pool.query(`insert into app.document select i, 1, 'Document ' || i from generate_series(0, ${documents - 1}) i`)
  await pool.query('vacuum (analyze) app.document')
  await pool.end()
}
