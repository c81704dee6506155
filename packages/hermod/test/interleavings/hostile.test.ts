// Case 58: texts of a destination that the database would refuse, and a settle that it does refuse.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as hostile from './cases/hostile.ts'

exerciseCases(Object.values(hostile), { ownCluster: false })
