// Rebuilds against live writes, take-overs in each phase, late numbers, and calls in flight.

import { exerciseCases } from '../../../../test/support/case.ts'
import { cases } from './cases/rebuilding.ts'

exerciseCases(cases, { ownCluster: false })
