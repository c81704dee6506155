// What the engine finds around it and did not choose: privileges, encodings, settings, a past that went away.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as privileged from './cases/privileged.ts'

exerciseCases(Object.values(privileged))
