// Cases 30 and 32–34: held aggregates, dead letters, coalescing, poison.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as failing from './cases/failing.ts'

exerciseCases(Object.values(failing), { ownCluster: false })
