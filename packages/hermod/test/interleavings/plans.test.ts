// Index scans only, at a size where anything else would show.

import { exerciseCases } from '../../../../test/support/case.ts'
import { plans } from './cases/plans.ts'

exerciseCases([plans], { ownCluster: true, settings: { autovacuum: 'off' } })
