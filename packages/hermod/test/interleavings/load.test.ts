// Cases with much of something: one huge commit, a queue of notifications that is full.

import { vi } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import { hugeTransaction } from './cases/huge.ts'
import { notifyQueueFull } from './cases/notify-queue.ts'

// 20 s were seen with sixteen processes waiting for two cores.
vi.setConfig({ testTimeout: 120_000 })
// 64 pages are the least a server accepts (PostgreSQL 17 and newer).
exerciseCases([hugeTransaction, notifyQueueFull], {
  ownCluster: true,
  settings: { max_notify_queue_pages: '64' },
})
