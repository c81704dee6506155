// Numbering on a server where nobody else is in the snapshots.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as numbering from './cases/numbering.ts'
import * as stepping from './cases/stepping.ts'

exerciseCases([...Object.values(numbering), ...Object.values(stepping)], {
  ownCluster: true,
  settings: { autovacuum: 'off' },
})
