// Cases 25, 26 and 47: leases, clocks and lost answers.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as leases from './cases/leases.ts'

exerciseCases(Object.values(leases), { ownCluster: false })
