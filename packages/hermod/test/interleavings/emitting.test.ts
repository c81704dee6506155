// Emitting: cases that need no server of their own, except that the log must be quiet.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as emitting from './cases/emitting.ts'
import * as freshPayload from './cases/fresh-payload.ts'
import * as locking from './cases/locking.ts'

exerciseCases([...Object.values(emitting), ...Object.values(freshPayload), ...Object.values(locking)], {})
