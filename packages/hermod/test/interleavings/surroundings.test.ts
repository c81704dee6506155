// What the engine finds around it and did not choose: privileges, encodings, settings, a past that went away.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as hostile from './cases/hostile-session.ts'
import * as oddJson from './cases/odd-json.ts'
import * as privileged from './cases/privileged.ts'
import * as wentBack from './cases/went-back.ts'

exerciseCases([privileged, wentBack, oddJson, hostile].flatMap((topic) => Object.values(topic)))
