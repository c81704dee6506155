// Interleaving 69, `retention-by-day`.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as cases from './cases/retention-by-day.ts'

exerciseCases(Object.values(cases))
