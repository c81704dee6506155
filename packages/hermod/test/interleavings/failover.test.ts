// Failover on real clusters: a standby that follows its primary is promoted, once complete and once
// lagging behind. Positions, fences and what the outside knows are never used twice.

import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { type Asks, holds } from '../../../../test/support/invariants.ts'
import { withDatabase } from '../../../../test/support/template.ts'
import { rebase } from '../../src/desk/rebase.ts'
import { copyCluster, type Postgres, startPostgres } from '../../src/embedded/index.ts'
import { createOutbox, migrate } from '../../src/index.ts'
import { memorySink } from '../../src/testing/index.ts'

const epoch = 2n ** 32n

type Node = Asks & { readonly postgres: Postgres; readonly pool: pg.Pool }

const open: Array<() => Promise<unknown>> = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

function connect(postgres: Postgres): Node {
  const connectionString = withDatabase(postgres.url(), 'app')
  const pool = new pg.Pool({ connectionString, max: 8 })
  pool.on('error', () => {})
  open.push(() => pool.end())
  return { postgres, pool, query: async (sql, params) => (await pool.query(sql, params)).rows }
}

async function primary(): Promise<Node> {
  const postgres = await startPostgres()
  open.push(() => postgres.destroy())
  const admin = new pg.Client({ connectionString: postgres.url() })
  await admin.connect()
  await admin.query('create database app template template0')
  await admin.end()
  const node = connect(postgres)
  await migrate(node.pool)
  return node
}

/** A copy of the stopped primary that follows it once both run again. */
async function standbyOf({ postgres }: Node): Promise<Node> {
  await postgres.stop()
  const standby = await copyCluster(postgres, { standby: { primaryUrl: postgres.url() } })
  open.push(() => standby.destroy())
  await postgres.start()
  return connect(standby)
}

async function caughtUp(from: Node, to: Node): Promise<void> {
  const [row] = await from.query('select pg_current_wal_lsn()::text as lsn')
  await eventually(
    async () => {
      const sql = 'select pg_last_wal_replay_lsn() >= $1::pg_lsn as there'
      const [seen] = await to.query(sql, [row?.lsn])
      return seen?.there === true
    },
    { timeoutMs: 20_000, what: 'the standby to catch up' },
  )
}

async function emitAll(db: Asks, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await db.query(`select outbox.emit('doc.updated', 'doc', $1, '{"v": 1}')`, [id])
  }
}

function subscribed({ pool }: Node) {
  const sink = memorySink()
  const warnings: string[] = []
  const listener = { warning: ({ code }: { code: string }) => void warnings.push(code) }
  const outbox = createOutbox({ pool, listener: listener as never })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  return { outbox, sink, warnings }
}

const STEP = 'select numbered, head::text, new_epoch from outbox.sequence()'

describe('promotion', { timeout: 60_000 }, () => {
  it('keeps the identifier, raises the epoch, and positions continue', async () => {
    const a = await primary()
    const b = await standbyOf(a)
    await emitAll(a, ['a', 'b'])
    await a.query(STEP)
    await emitAll(a, ['c'])
    await caughtUp(a, b)
    await expect(b.query(STEP)).rejects.toMatchObject({ code: 'HM012' })
    await a.postgres.stop('immediate')
    await b.query('select pg_promote()')
    await eventually(async () => !(await b.query('select pg_is_in_recovery() as r'))[0]?.r)
    expect(await b.query(STEP)).toEqual([{ numbered: 1, head: `${epoch + 1n}`, new_epoch: true }])
    await emitAll(b, ['d'])
    expect(await b.query(STEP)).toEqual([{ numbered: 1, head: `${epoch + 2n}`, new_epoch: false }])
    const steps = await b.query('select distinct system_identifier::text, epoch from outbox.step where id > 1')
    expect(steps).toHaveLength(1)
    expect(steps[0]?.epoch).toBe(1)
    await holds(b, 'I1', 'I3', 'I5')
  })
})

describe('position-after-failover', { timeout: 60_000 }, () => {
  it('reuses no position, fence or key the outside may have seen', async () => {
    const a = await primary()
    const b = await standbyOf(a)
    const before = subscribed(a)
    await emitAll(a, ['a', 'b'])
    await before.outbox.runOnce()
    await caughtUp(a, b)
    await b.query(`alter system set primary_conninfo = ''`)
    await b.query('select pg_reload_conf()')
    await eventually(async () => (await b.query('select from pg_stat_wal_receiver')).length === 0)
    await emitAll(a, ['lost-1', 'lost-2'])
    await before.outbox.runOnce()
    const [fences] = await a.query('select max(fence)::text as fence from outbox.lane')
    await a.postgres.stop('immediate')
    await b.query('select pg_promote()')

    const after = subscribed(b)
    await eventually(async () => !(await b.query('select pg_is_in_recovery() as r'))[0]?.r)
    await emitAll(b, ['c', 'd'])
    const worker = await after.outbox.start({ upkeep: false })
    await eventually(() => after.sink.accepted.length === 2, { what: 'two events' })
    await worker.stop()
    expect(after.warnings, 'the possible loss is reported').toContain('HMD_RESTORED')
    const seen = before.sink.accepted.map(({ position }) => position)
    const now = after.sink.accepted.map(({ position }) => position)
    expect(new Set(seen), 'seen before').toEqual(new Set([1n, 2n, 3n, 4n]))
    expect(new Set(now), 'seen after').toEqual(new Set([epoch + 1n, epoch + 2n]))
    const [low] = await b.query('select min(fence)::text as fence from outbox.lane')
    expect(BigInt(low?.fence as string)).toBeGreaterThan(BigInt(fences?.fence as string))
    await holds(b, 'I1', 'I3', 'I5', 'I8')
  })
})

describe('head-went-back', { timeout: 60_000 }, () => {
  it('a physical copy of yesterday in the place of today is refused by who has seen today', async () => {
    const a = await primary()
    await emitAll(a, ['a', 'b'])
    await a.query(STEP)
    await a.postgres.stop()
    const yesterday = await copyCluster(a.postgres)
    await yesterday.stop()
    await a.postgres.start()
    const { outbox, sink } = subscribed(a)
    await emitAll(a, ['c'])
    await outbox.runOnce()
    expect(new Set(sink.accepted.map(({ position }) => position))).toEqual(new Set([1n, 2n, 3n]))
    await a.postgres.stop()
    const restored = await copyCluster(yesterday, { port: a.postgres.port })
    open.push(() => restored.destroy())
    open.push(() => yesterday.destroy())
    await emitAll(a, ['d'])
    await expect(outbox.runOnce(), 'a position given twice').rejects.toMatchObject({ code: 'HMD_HEAD_WENT_BACK' })
    expect(await a.query('select max(pos)::int as head from outbox.step')).toEqual([{ head: 2 }])
    await rebase(a.pool, { rolledBack: true })
    await outbox.runOnce()
    expect(sink.accepted.at(-1)).toMatchObject({ aggregateId: 'd', position: epoch + 1n })
  })
})
