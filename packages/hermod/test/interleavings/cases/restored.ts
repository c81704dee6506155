// A restore as it really happens: rows that were written in one cluster are copied into a freshly
// migrated database of another. Their xids and snapshots belong to the first.

import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Asks } from '../../../../../test/support/invariants.ts'
import { migrateDatabase, withDatabase } from '../../../../../test/support/template.ts'
import { type Postgres, startPostgres } from '../../../src/embedded/index.ts'

/** One for all cases of a file; it ends with the process. */
let cluster: Promise<Postgres> | undefined
let databases = 0

/** A migrated database in a second real cluster. */
export async function secondCluster(): Promise<Asks> {
  cluster ??= startPostgres()
  const postgres = await cluster
  const name = `source_${++databases}`
  const admin = openPool(postgres.url())
  await admin.query(`create database ${name} template template0`)
  await admin.end()
  const url = withDatabase(postgres.url(), name)
  await migrateDatabase(url)
  const pool = openPool(url)
  onTestFinished(() => pool.end())
  return { query: async (sql, params) => (await pool.query(sql, params)).rows }
}

function openPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 3 })
  pool.on('error', () => {})
  return pool
}

export type CopyOptions = {
  /** Tables left out; what a partial restore forgets. */
  readonly without?: readonly string[]
  /** False: rows are restored, their sequences are not. */
  readonly sequences?: boolean
}

const TABLES = `
  select relname as name from pg_class where relnamespace = 'outbox'::regnamespace
     and relkind in ('r', 'p') and not relispartition and relname <> 'migration' order by 1`

/** What `pg_dump --data-only` and `pg_restore --disable-triggers` do. */
export async function restore(from: Asks, to: pg.Pool, options: CopyOptions = {}): Promise<void> {
  const { without = [], sequences = true } = options
  const tables = (await from.query(TABLES)).map(({ name }) => String(name))
  const client = await to.connect()
  try {
    await client.query(`begin; set local session_replication_role = replica`)
    for (const table of tables.filter((name) => !without.includes(name))) {
      await copyTable(from, client, table)
    }
    if (sequences) await copySequences(from, client)
    await client.query('commit')
  } finally {
    client.release()
  }
}

async function copyTable(from: Asks, to: pg.PoolClient, table: string): Promise<void> {
  const [row] = await from.query(`select coalesce(json_agg(t), '[]')::text as rows from outbox.${table} t`)
  await to.query(`delete from outbox.${table}`)
  await to.query(
    `insert into outbox.${table} overriding system value
     select * from json_populate_recordset(null::outbox.${table}, $1)`,
    [row?.rows],
  )
}

async function copySequences(from: Asks, to: pg.PoolClient): Promise<void> {
  const rows = await from.query(`select sequencename as name, last_value from pg_sequences where schemaname = 'outbox'`)
  for (const { name, last_value: last } of rows) {
    if (last !== null) await to.query(`select setval('outbox.' || $1::text, $2)`, [name, last])
  }
}

/** Lets the counter of one cluster run ahead of another's. */
export async function runAhead(db: Asks, of: Asks, by: number): Promise<void> {
  const gap = Number((await nextXid(of)) - (await nextXid(db)))
  if (gap + by > 0) await burnXids(db, gap + by)
}

/** Uses up transaction ids: every inner block of the loop takes one. */
export async function burnXids(db: Asks, count: number): Promise<void> {
  await db.query(`create table if not exists burnt (n int)`)
  await db.query(`do $$ begin for i in 1 .. ${count} loop
    begin insert into burnt values (i); exception when division_by_zero then null; end;
  end loop; truncate burnt; end $$`)
}

/** The counter of this cluster. */
export async function nextXid(db: Asks): Promise<bigint> {
  const [row] = await db.query('select pg_snapshot_xmax(pg_current_snapshot())::text as xid')
  return BigInt(row?.xid as string)
}

/** How many events one step numbered; positions of later epochs do not fit an integer. */
export async function step(db: Asks): Promise<number> {
  const [row] = await db.query('select numbered from outbox.sequence()')
  return row?.numbered as number
}
