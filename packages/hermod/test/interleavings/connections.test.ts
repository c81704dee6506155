// Case 64, and a pool whose errors nobody hears.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as connections from './cases/connections.ts'

exerciseCases(Object.values(connections), { ownCluster: false })
