// Modes, rates, priorities, filters, runOnce: the policies of a subscription while it is served.

import { expect, it } from 'vitest'
import { copyDatabase, exerciseCases, loadEngine } from '../../../../test/support/case.ts'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { Rate } from '../../src/worker/rate.ts'
import { Turnstile } from '../../src/worker/turnstile.ts'
import * as policies from './cases/policies.ts'
import { labels, quiet, stage } from './cases/stage.ts'

exerciseCases(Object.values(policies), { ownCluster: false })

const server = useDatabase()

it('several databases in one process', async () => {
  const engine = await loadEngine()
  const stages = []
  for (let n = 0; n < 3; n++) stages.push(await stage({ db: await copyDatabase(server, server.name), engine }))
  const sinks = stages.map(() => engine.testing.memorySink())
  const workers = await Promise.all(
    stages.map((s, n) => s.outbox(sinks[n] as never).start({ ...quiet, concurrency: 2 })),
  )
  for (const [n, s] of stages.entries()) await s.change(`only-${n}`)
  await eventually(() => sinks.every((sink) => sink.accepted.length === 1))
  await Promise.all(workers.map((worker) => worker.stop()))
  expect(sinks.map((sink) => labels(sink))).toEqual([['only-0@1'], ['only-1@1'], ['only-2@1']])
})

it('rate: at most so many a second, whoever draws', () => {
  let now = 0
  const rate = new Rate(100, () => now)
  const loops = [{}, {}, {}, {}]
  for (const loop of loops) rate.share(loop, 0.25)
  let sent = 0
  for (now = 0; now < 10_000; now += 7) {
    for (const _ of loops) {
      const may = rate.available()
      rate.take(may)
      sent += may
    }
  }
  expect(sent).toBeGreaterThan(950)
  expect(sent).toBeLessThanOrEqual(1_000)
  rate.take(rate.available())
  expect(rate.waitMs()).toBeGreaterThan(0)
  now += 1_000
  expect(rate.available(), 'a quarter of a second is saved up').toBe(25)
  expect(rate.waitMs(), 'one may go: nothing to wait for').toBe(0)
  for (const loop of loops) rate.share(loop, 0)
  rate.take(25)
  now += 1_000
  expect(rate.available(), 'without lanes nothing is earned').toBe(0)
})

it('turnstile: higher first, and nobody starves', async () => {
  const turnstile = new Turnstile(1)
  const order: string[] = []
  let open = (): void => {}
  const busy = turnstile.through(
    0,
    () =>
      new Promise<void>((resolve) => {
        open = resolve
      }),
  )
  const low = turnstile.through(0, async () => void order.push('low'))
  const high = Array.from({ length: 20 }, (_, n) => turnstile.through(9, async () => void order.push(`high ${n}`)))
  open()
  await Promise.all([busy, low, ...high])
  expect(order[0]).toBe('high 0')
  expect(order.indexOf('low'), 'the one that waited longest').toBeLessThan(8)
  await expect(turnstile.through(0, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await turnstile.through(0, async () => 'free again')).toBe('free again')
})
