// Case 31 and its relatives: reading ahead of what is not settled yet.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as pipeline from './cases/pipeline.ts'

exerciseCases(Object.values(pipeline), { ownCluster: false })
