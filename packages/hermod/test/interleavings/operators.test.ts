// Operators and frozen sessions beside deliveries that go on.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as operators from './cases/operators.ts'

exerciseCases(Object.values(operators))
