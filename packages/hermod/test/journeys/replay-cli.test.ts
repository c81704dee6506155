// `hermod replay` and `hermod journeys` as people run them, and a worker that is killed in the middle.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { BY, docs, stage } from '../desk/stage.ts'

const db = useDatabase()
const dist = new URL('../../dist/', import.meta.url)
const bin = fileURLToPath(new URL('cli/main.js', dist))
const folder = mkdtempSync(join(tmpdir(), 'hermod-replay-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function start(args: string[], more: Record<string, string> = {}) {
  const { NO_COLOR: _, ...env } = process.env
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env: { ...env, DATABASE_URL: db.url, USER: 'ada', ...more },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = { code: null as number | null, out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    ended.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    ended.err += chunk
  })
  const end = new Promise<typeof ended>((resolve) => child.on('close', (code) => resolve({ ...ended, code })))
  return { child, end }
}
const hermod = (...args: string[]) => start(args).end

it('counts, asks, starts, lists and steers', { timeout: 60_000 }, async () => {
  const s = await stage(db, { told: {} })
  const [first] = await s.emit(...docs('a', 'b', 'c'))
  await s.work('told')
  const from = ['--from-position', String(await s.positionOf(first))]
  const [counted, unasked, unsaid, odd, range] = await Promise.all([
    hermod('replay', 'told', ...from, '--dry-run', '--json'),
    hermod('replay', 'told', ...from),
    hermod('replay', 'told', '--dry-run'),
    hermod('replay', 'told', ...from, '--aggregate', 'document', '--dry-run'),
    hermod('replay', 'told', '--from-position', '999999', '--json'),
  ])
  expect(JSON.parse(counted?.out ?? '')).toMatchObject({ matching: 3, sending: 3, dryRun: true })
  expect(unasked).toMatchObject({ code: 2, err: expect.stringContaining('Send 3 events to told') })
  expect(unsaid).toMatchObject({ code: 2, err: expect.stringContaining('--since TIME') })
  expect(odd).toMatchObject({ code: 2, err: expect.stringContaining('TYPE/ID') })
  expect(JSON.parse(range?.err ?? '')).toMatchObject({ error: { code: 'HMD_REPLAY_RANGE' } })
  const begun = await hermod('replay', 'told', ...from, '--yes', '--no-wait')
  expect(begun).toMatchObject({ code: 0, out: expect.stringMatching(/^journey\t\d+\n$/) })
  const id = begun.out.trim().split('\t')[1] as string
  expect(await hermod('journeys', 'pause', id)).toMatchObject({ out: `${id}\tpaused\n` })
  const [listed, shown, unknown] = await Promise.all([
    hermod('journeys', 'list', '--json', '--kind', 'replay', '--state', 'paused'),
    hermod('journeys', 'show', id),
    hermod('journeys', 'show', '999999'),
  ])
  expect(JSON.parse(listed?.out ?? '').journeys).toMatchObject([{ id, requestedBy: 'cli:ada' }])
  expect(shown?.out).toContain('state\tpaused')
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('HMD_JOURNEY_UNKNOWN') })
  await hermod('journeys', 'resume', id)
  s.sinks.told?.clear()
  await s.work('told')
  expect(s.sinks.told?.accepted).toHaveLength(3)
})

it('killed with -9 again and again, it is finished by whoever starts next', { timeout: 180_000 }, async () => {
  const outbox = createOutbox({ pool: db.pool })
  // Leases have room for a machine that is busy; those of a dead worker end when the script says so.
  const clock = await fakeClock(db.pool)
  onTestFinished(() => clock.restore())
  const leaseMs = 60_000
  const count = 2_000
  const log = join(folder, 'sent.txt')
  writeFileSync(log, '')
  writeFileSync(
    join(folder, 'killed.mjs'),
    `import { appendFileSync } from 'node:fs'
     import pg from ${JSON.stringify(pathToFileURL(fileURLToPath(import.meta.resolve('pg'))).href)}
     import { createOutbox } from ${JSON.stringify(new URL('index.js', dist).href)}
     const outbox = createOutbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
     let left = Number(process.env.KILL_AFTER ?? Infinity)
     const sink = {
       name: 'file',
       async deliver(events) {
         await new Promise((resolve) => setTimeout(resolve, 5))
         appendFileSync(${JSON.stringify(log)}, events.map(({ position }) => position + '\\n').join(''))
         left -= events.length
         if (left < 0) process.kill(process.pid, 'SIGKILL')
       },
     }
     outbox.subscribe('killed', { revision: 1, types: ['killed.*'], from: 'beginning', sink, callMs: 20_000, batch: { count: 100 } })
     const { start } = outbox
     outbox.start = (options) => start.call(outbox, { ...options, leaseMs: ${leaseMs}, pollMs: 20 })
     export default outbox`,
  )
  await db.query(
    `insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload)
     select 10, 'killed.now', 'thing', 't' || n % 700, '{}' from generate_series(1, $1::int) n`,
    [count],
  )
  const sent = () => readFileSync(log, 'utf8').trim().split('\n')
  const work = (more?: Record<string, string>) => start(['work', '--config', 'killed.mjs'], more)
  const live = work()
  // A call that was slow is made again: what counts is that every event was sent.
  await eventually(() => new Set(sent()).size === count, { timeoutMs: 60_000, what: 'every event to be sent' })
  live.child.kill('SIGTERM')
  await live.end
  const positions = new Set(sent())
  writeFileSync(log, '')
  const { id } = await outbox.journeys.replay('killed', { from: 1n, ratePerSecond: 3_000, ...BY })
  for (const _ of [1, 2]) {
    // It kills itself in the middle of a call: what it sent there is known to nobody.
    const killed = work({ KILL_AFTER: '200' })
    await killed.end
    expect(killed.child.signalCode).toBe('SIGKILL')
    await clock.advance(leaseMs)
  }
  expect(new Set(sent()).size, 'something is left to send').toBeLessThan(count)
  const last = work()
  const ended = async () => (await outbox.journeys.show(id))?.state === 'succeeded'
  await eventually(ended, { timeoutMs: 90_000, everyMs: 50, what: 'the replay to end' })
  last.child.kill('SIGTERM')
  await last.end
  expect(new Set(sent()), 'every position was sent again').toEqual(positions)
  expect(sent().length, 'sent twice: at most a slice a loop and kill').toBeLessThan(count + 2 * 4 * 200)
})
