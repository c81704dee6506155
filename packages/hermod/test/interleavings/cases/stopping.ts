// A polite stop is free: nothing new is begun, what runs is finished or given back, nothing is spent.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import { gate, labels, quiet, stage } from './stage.ts'

export const politeStop = defineCase('polite-stop', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const [started, may] = [gate(), gate()]
  const slow = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      started.open()
      await may.opened
      return sink.deliver(...args)
    },
  }
  await s.bulk(1_000, `'doc.changed'`, `'d' || n % 100`)
  const outbox = s.outbox(slow, { subscription: { batch: { count: 10 } } })
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await started.opened
  const stopped = worker.stop()
  expect(worker.stop(), 'stopping twice').toBe(stopped)
  may.open()
  await stopped
  expect(sink.calls.length, 'calls begun after the stop').toBe(1)
  expect(await s.held(worker.id), 'lanes still held').toBe(0)
  expect(await s.rows()).toEqual([])
  expect(await s.open(), 'the finished call is settled').toBe(1_000 - sink.accepted.length)
  await s.outbox(sink, { subscription: { batch: { count: 10 } } }).runOnce(quiet)
  expect(sink.accepted.length, 'duplicates after a polite stop').toBe(1_000)
  await holds(s.db, 'I8')
})

export const graceOver = defineCase('polite-stop: the grace is over', async (env) => {
  const s = await stage(env)
  let aborted = false
  const started = gate()
  const sink = {
    name: 'memory',
    deliver: (_: readonly OutboxEvent[], { signal }: { signal: AbortSignal }) =>
      new Promise<undefined>((_resolve, reject) => {
        started.open()
        signal.addEventListener('abort', () => {
          aborted = true
          reject(signal.reason)
        })
      }),
  }
  await s.change('a', 'b')
  const worker = await s.outbox(sink).start({ ...quiet, stopGraceMs: 50 })
  await started.opened
  await worker.stop()
  expect(aborted, 'the call is told').toBe(true)
  expect(await s.held(), 'lanes still held').toBe(0)
  expect(await s.rows(), 'attempts spent by a shutdown').toEqual([])
  const [held] = await s.db.query('select held_cause from outbox.subscription')
  expect(held?.held_cause, 'a shutdown is no outage').toBeNull()
  const memory = env.engine.testing.memorySink()
  await s.outbox(memory).runOnce(quiet)
  expect(labels(memory).sort()).toEqual(['a@1', 'b@1'])
})

/** Even a sink that ignores everything cannot keep a worker from ending. */
export const deafSink = defineCase('polite-stop: a sink that never settles', async (env) => {
  const s = await stage(env)
  const started = gate()
  const deliver = () => {
    started.open()
    return new Promise<undefined>(() => {})
  }
  const sink = { name: 'memory', deliver }
  await s.change('a')
  const worker = await s.outbox(sink).start({ ...quiet, stopGraceMs: 10 })
  await started.opened
  await worker.stop()
  expect(await s.held(), 'lanes still held').toBe(0)
  expect(await s.rows(), 'attempts spent by a shutdown').toEqual([])
})
