// Archive before dropping: a folder and a bucket (a double, see s3-double.ts). What could not be
// archived stays.

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, onTestFinished } from 'vitest'
import { defineCase, type Env, exerciseCases } from '../../../../test/support/case.ts'
import { workerOptions } from '../../src/options.ts'
import type { Archive } from '../../src/worker/upkeep/archive.ts'
import { dayMs, emitMany, leafName, rowsIn, setup, tinyLeaves } from './cases/leaves.ts'
import { bucket, s3Double } from './s3-double.ts'

async function oldEvents(env: Env, archive: Archive) {
  const made = await setup(env, { archive })
  await tinyLeaves(env.db)
  made.outbox.subscribe('all', { revision: 1, types: ['*'], sink: made.sink, from: 'beginning' })
  await env.db.query(
    `select outbox.emit('document.updated', 'document', 'ä', E'{\\n "a": [1,\\n2]}', '{"actor":"x"}', null, 'k1')`,
  )
  await emitMany(env.db, 34)
  await env.engine.testing.drain(made.outbox)
  await made.clock.advance(8 * dayMs)
  return made
}

function linesOf(file: Buffer): Record<string, unknown>[] {
  const text = gunzipSync(file).toString()
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const toFolder = defineCase('a folder gets one file per leaf, in order of position', async (env) => {
  const folder = join(await mkdtemp(join(tmpdir(), 'hermod-test-')), 'deep')
  onTestFinished(() => rm(join(folder, '..'), { recursive: true, force: true }))
  const { turn } = await oldEvents(env, { folder })
  await turn()
  const files = (await readdir(folder)).toSorted()
  const modeOf = async (path: string) => (await stat(path)).mode & 0o777
  expect(await modeOf(folder), 'payloads are for this account alone').toBe(0o700)
  expect(await modeOf(join(folder, files[0] ?? ''))).toBe(0o600)
  const digits = (n: number) => String(n).padStart(19, '0')
  expect(files, 'three leaves that are full, and what is old of the one in use').toEqual(
    [1, 11, 21, 31].map((n) => `log-${digits(n)}-${digits(Math.min(n + 10, 36))}.ndjson.gz`),
  )
  const lines = linesOf(await readFile(join(folder, files[0] ?? '')))
  expect(lines.map(({ position }) => position)).toEqual(Array.from({ length: 10 }, (_, n) => String(n + 1)))
  expect(lines[0]).toMatchObject({
    id: '1',
    type: 'document.updated',
    aggregate: ['document', 'ä'],
    version: 1,
    key: 'k1',
    headers: { actor: 'x' },
    payload: { a: [1, 2] },
  })
  expect(await rowsIn(env.db, leafName('log', 1))).toBe(0)
  expect(await env.db.query('select archived_rows::int from outbox.leaf where archived_as is not null')).toEqual([
    ...[{ archived_rows: 10 }, { archived_rows: 10 }, { archived_rows: 10 }],
  ])
})

const toBucket = defineCase('a bucket gets signed objects; a failed one keeps its leaf', async (env) => {
  const double = await s3Double()
  const { turn, warnings, sink } = await oldEvents(env, {
    s3: { ...bucket, endpoint: double.endpoint },
  })
  double.failWith = 503
  const first = await turn()
  expect(first.held.get(leafName('log', 1))).toBe('not archived')
  expect(await rowsIn(env.db, leafName('log', 1)), 'what was not archived stays').toBe(10)
  expect(warnings.map(({ code }) => code)).toEqual(['HMD_ARCHIVE_FAILED'])
  expect(warnings[0]?.message).toContain('503')
  expect(JSON.stringify(warnings)).not.toContain(bucket.secretAccessKey)
  double.failWith = undefined
  await turn()
  expect(await rowsIn(env.db, leafName('event', 1))).toBe(0)
  const [path, body] = [...double.objects][0] ?? []
  expect(path).toMatch(/^\/archive\/hermod\/unit tests\/log-0{18}1-/)
  expect(linesOf(body as Buffer).length).toBe(10)
  expect(sink.accepted.length).toBe(35)
})

const wrongKey = defineCase('a wrong secret is refused by the bucket and keeps the leaf', async (env) => {
  const double = await s3Double()
  const s3 = { ...bucket, secretAccessKey: 'wrong', endpoint: double.endpoint }
  const { turn, warnings } = await oldEvents(env, { s3 })
  await turn()
  expect(warnings[0]?.message).toContain('SignatureDoesNotMatch')
  expect(await rowsIn(env.db, leafName('log', 1))).toBe(10)
})

const noFolder = defineCase('a folder that cannot be written keeps the leaf', async (env) => {
  const folder = await mkdtemp(join(tmpdir(), 'hermod-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'file'), '')
  const { turn, warnings } = await oldEvents(env, { folder: join(folder, 'file', 'below') })
  await turn()
  expect(warnings.map(({ code }) => code)).toEqual(['HMD_ARCHIVE_FAILED'])
  expect(await rowsIn(env.db, leafName('log', 1))).toBe(10)
})

const slowLeaf = defineCase('a leaf that fills slowly is archived in parts, each position once', async (env) => {
  const folder = await mkdtemp(join(tmpdir(), 'hermod-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const made = await setup(env, { archive: { folder } })
  await tinyLeaves(env.db, 2)
  made.outbox.subscribe('all', { revision: 1, types: ['*'], sink: made.sink, from: 'beginning' })
  for (const count of [3, 4, 8]) {
    await emitMany(env.db, count)
    await env.engine.testing.drain(made.outbox)
    await made.clock.advance(9 * dayMs)
    await made.turn()
  }
  const files = (await readdir(folder)).toSorted()
  const lines = await Promise.all(files.map(async (file) => linesOf(await readFile(join(folder, file)))))
  expect(lines.map(({ length }) => length)).toEqual([3, 4, 3, 5])
  const positions = lines.flat().map(({ position }) => Number(position))
  expect(positions).toEqual(Array.from({ length: 15 }, (_, n) => n + 1))
  expect(await env.db.query('select from outbox.event')).toEqual([])
})

/** One dead letter, one unknown outcome, one that was given up, one receipt; all of them expired. */
async function expiredDeliveries(env: Env, archive: Archive) {
  const made = await setup(env, { archive })
  const { rejected } = await env.engine.load<typeof import('../../src/sinks/sink.ts')>('sinks/sink.ts')
  made.sink.answer(({ aggregateId }) =>
    aggregateId === 'd1' || aggregateId === 'd3' ? rejected({ code: 'no', message: 'not today' }) : undefined,
  )
  made.outbox.subscribe('all', { revision: 1, types: ['*'], sink: made.sink, from: 'beginning' })
  await emitMany(env.db, 5)
  await env.engine.testing.drain(made.outbox)
  const { length } = await env.db.query(`update outbox.delivery set state = 'discarded', reason = 'given up'
    where aggregate_id = 'd3' returning pos`)
  expect(length).toBe(1)
  await env.db.query(`insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, updated_at)
    select 'all', l.lane, l.pos, l.event_id, e.aggregate_type, e.aggregate_id, l.hash,
           case e.aggregate_id when 'd4' then 'unknown' else 'delivered' end, outbox.clock()
      from outbox.log l join outbox.event e on e.id = l.event_id where e.aggregate_id in ('d4', 'd5')`)
  await made.clock.advance(10 * dayMs)
  await made.turn()
  await made.clock.advance(21 * dayMs)
  return made
}

const expired = defineCase('expired dead letters are archived before they go', async (env) => {
  const folder = await mkdtemp(join(tmpdir(), 'hermod-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const { turn } = await expiredDeliveries(env, { folder })
  expect(await env.db.query('select from outbox.event'), 'their events are long gone').toEqual([])
  await turn()
  expect(await env.db.query('select from outbox.delivery')).toEqual([])
  const [file, ...more] = (await readdir(folder)).filter((name) => name.startsWith('delivery-'))
  expect(more).toEqual([])
  const lines = linesOf(await readFile(join(folder, file as string)))
  const found = new Map(lines.map((line) => [(line.aggregate as string[])[1], line]))
  expect([...found.keys()].toSorted(), 'what was delivered needs no archive').toEqual(['d1', 'd3', 'd4'])
  expect(found.get('d1')).toMatchObject({
    subscription: 'all',
    state: 'dead',
    code: 'no',
    error: 'not today',
    event: { type: 'document.updated', payload: { n: 1 } },
  })
  expect(found.get('d3')).toMatchObject({ state: 'discarded', reason: 'given up' })
  expect(found.get('d4')).toMatchObject({ state: 'unknown', event: { payload: { n: 4 } } })
  const audit = await env.db.query(
    `select sum(count)::int as count from outbox.audit where action = 'retention.delivery' and reason like '%archived in%'`,
  )
  expect(audit, 'each removal says where to find it').toEqual([{ count: 3 }])
})

const notExpired = defineCase('a dead letter that could not be archived stays', async (env) => {
  const double = await s3Double()
  const { turn, warnings } = await expiredDeliveries(env, { s3: { ...bucket, endpoint: double.endpoint } })
  double.failWith = 503
  await turn()
  const left = () => env.db.query(`select aggregate_id as id, state from outbox.delivery order by id`)
  expect(await left(), 'only the receipt went').toEqual([
    { id: 'd1', state: 'dead' },
    { id: 'd3', state: 'discarded' },
    { id: 'd4', state: 'unknown' },
  ])
  expect(warnings.map(({ code }) => code)).toEqual(['HMD_ARCHIVE_FAILED'])
  double.failWith = undefined
  await turn()
  expect(await left()).toEqual([])
  expect([...double.objects.keys()].filter((path) => path.includes('/delivery-')).length).toBe(1)
})

const options = defineCase('options say what is wrong, and no secret', async () => {
  const wrong = (archive: object) => () => workerOptions({ retention: { archive } })
  expect(wrong({})).toThrow(/archive must have either folder or s3/)
  expect(wrong({ folder: '/a', s3: { ...bucket, endpoint: 'http://x' } })).toThrow(/either folder or s3/)
  expect(wrong({ s3: { ...bucket, endpoint: 'x' } })).toThrow(/s3.endpoint must be an address/)
  expect(wrong({ s3: { ...bucket, endpoint: 'http://x', secretAccessKey: '' } })).toThrow(/secretAccessKey must be/)
  expect(wrong({ folders: 'x' })).toThrow(/did you mean folder/)
})

exerciseCases([toFolder, toBucket, wrongKey, noFolder, slowLeaf, expired, notExpired, options], { ownCluster: false })
