// Index scans only, at a size where anything else would show.

import { vi } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import { plans } from './cases/plans.ts'

// 34 s were seen with sixteen processes waiting for two cores.
vi.setConfig({ testTimeout: 120_000 })
exerciseCases([plans], { ownCluster: true, settings: { autovacuum: 'off' } })
