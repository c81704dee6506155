// Subscriptions that come and go while workers run.

import { exerciseCases } from '../../../../test/support/case.ts'
import { cases } from './cases/run-time.ts'

exerciseCases(cases)
