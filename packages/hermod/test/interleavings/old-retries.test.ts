// Old retries are as cheap to read and settle as new ones.

import { vi } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import * as oldRetries from './cases/old-retries.ts'

vi.setConfig({ testTimeout: 120_000 })
exerciseCases(Object.values(oldRetries), { ownCluster: false })
