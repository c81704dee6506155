// Steps, settles and reads in one statement.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as turning from './cases/turning.ts'

exerciseCases(Object.values(turning), { ownCluster: false })
