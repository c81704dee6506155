// Asynchronous destinations: parked calls, resumed, void, stopped, shared.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as cases from './cases/parking.ts'

exerciseCases(Object.values(cases), { ownCluster: false })
