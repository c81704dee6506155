// Rare edges, each of which once cost an event, a call or a row.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as edges from './cases/edges.ts'

exerciseCases(Object.values(edges), { ownCluster: false })
