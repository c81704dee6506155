// Cases 37 and 50: replay beside live deliveries.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as replay from './cases/replay.ts'

exerciseCases(Object.values(replay), { ownCluster: false })
