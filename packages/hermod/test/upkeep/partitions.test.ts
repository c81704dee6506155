// Interleavings 41, `no-partition`, and 45, `upkeep-with-open-producer`.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as cases from './cases/partitions.ts'

exerciseCases(Object.values(cases))
