// Archive before dropping: a folder and a bucket (a double, see s3-double.ts). What could not be
// archived stays.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
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
  expect(files).toEqual(
    [1, 11, 21].map((n) => `log-${String(n).padStart(19, '0')}-${String(n + 10).padStart(19, '0')}.ndjson.gz`),
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

const options = defineCase('options say what is wrong, and no secret', async () => {
  const wrong = (archive: object) => () => workerOptions({ retention: { archive } })
  expect(wrong({})).toThrow(/archive must have either folder or s3/)
  expect(wrong({ folder: '/a', s3: { ...bucket, endpoint: 'http://x' } })).toThrow(/either folder or s3/)
  expect(wrong({ s3: { ...bucket, endpoint: 'x' } })).toThrow(/s3.endpoint must be an address/)
  expect(wrong({ s3: { ...bucket, endpoint: 'http://x', secretAccessKey: '' } })).toThrow(/secretAccessKey must be/)
  expect(wrong({ folders: 'x' })).toThrow(/did you mean folder/)
})

exerciseCases([toFolder, toBucket, wrongKey, noFolder, options], { ownCluster: false })
