// Cases that crash, restart or copy their server: a durable one of their own.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as crash from './cases/crash.ts'

exerciseCases(Object.values(crash), {
  ownCluster: true,
  durable: true,
  settings: { autovacuum: 'off', wal_writer_delay: '10s' },
})
