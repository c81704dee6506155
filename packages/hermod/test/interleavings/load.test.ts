// Cases with much of something: one huge commit, a queue of notifications that is full.

import { describe, inject, vi } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import { hugeTransaction } from './cases/huge.ts'
import { notifyQueueFull } from './cases/notify-queue.ts'

// 20 s were seen with sixteen processes waiting for two cores.
vi.setConfig({ testTimeout: 120_000 })
exerciseCases([hugeTransaction])

// 64 pages are the least a server accepts; an older one has room for 8 GB, which takes too long to fill.
const hasLimit = inject('testServer').major >= 17
describe.runIf(hasLimit)('a small queue (needs PostgreSQL 17)', () => {
  exerciseCases([notifyQueueFull], { ownCluster: true, settings: { max_notify_queue_pages: '64' } })
})
