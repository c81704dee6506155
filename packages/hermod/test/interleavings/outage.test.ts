// Cases 35, 36 and 55: destinations that are away, throttled or wrongly set up.

import { exerciseCases } from '../../../../test/support/case.ts'
import { brownOut, lonelyTimeout, oneProbe, outages, probeRace, retryAfter } from './cases/outage.ts'

exerciseCases([...outages, probeRace, oneProbe, retryAfter, brownOut, lonelyTimeout], {
  ownCluster: false,
})
