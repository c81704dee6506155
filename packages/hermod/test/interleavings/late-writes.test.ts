// A write that lands after newer ones: the newest state wins all the same.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as lateWrites from './cases/late-writes.ts'

exerciseCases(Object.values(lateWrites), { ownCluster: false })
