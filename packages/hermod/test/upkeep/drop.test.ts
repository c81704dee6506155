// Interleaving 40, `drop`.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as cases from './cases/drop.ts'

exerciseCases(Object.values(cases))
