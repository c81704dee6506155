// Interleaving 53: `quiet-lane-retention`, `receipt-retention`, `forgotten-subscription`.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as cases from './cases/quiet.ts'

exerciseCases(Object.values(cases))
