// Idle subscriptions cost nothing of their own, and miss nothing.

import { exerciseCases } from '../../../../test/support/case.ts'
import { cases } from './cases/idle.ts'

exerciseCases(cases)
