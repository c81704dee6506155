// Case 62: nothing cached from the database outlives its epoch.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as epoch from './cases/epoch.ts'

exerciseCases(Object.values(epoch))
