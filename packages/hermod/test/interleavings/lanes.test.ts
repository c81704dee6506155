// Cases 23, 24, 27–29 and 46: lanes and what is read of them.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as lanes from './cases/lanes.ts'

exerciseCases(Object.values(lanes), { ownCluster: false })
