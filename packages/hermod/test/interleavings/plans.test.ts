// Index scans only, at a size where anything else would show.

import { vi } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import { plans } from './cases/plans.ts'

// Six seconds on two idle cores; busy ones need more.
vi.setConfig({ testTimeout: 120_000 })
exerciseCases([plans], { ownCluster: true, settings: { autovacuum: 'off' } })
