// Restores, moves and what rebase makes of them, on two real clusters.

import { exerciseCases } from '../../../../test/support/case.ts'
import { cases } from './cases/restoring.ts'

exerciseCases(cases)
