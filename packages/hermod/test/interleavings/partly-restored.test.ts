// Restores that are not complete, and rebase asked in other ways than plainly.

import { exerciseCases } from '../../../../test/support/case.ts'
import { cases } from './cases/partly-restored.ts'

exerciseCases(cases)
