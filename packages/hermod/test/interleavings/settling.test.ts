// Batches settled beside the next reads and calls.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as settling from './cases/settling.ts'

exerciseCases(Object.values(settling), { ownCluster: false })
