// Crashes and lost connections: nothing committed is lost.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as losing from './cases/losing.ts'

exerciseCases(Object.values(losing), { ownCluster: false })
