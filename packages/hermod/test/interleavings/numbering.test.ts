// Numbering on a server where nobody else is in the snapshots.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as byXid from './cases/by-xid.ts'
import * as cost from './cases/cost.ts'
import * as numbering from './cases/numbering.ts'
import * as stepping from './cases/stepping.ts'

const near = [numbering, stepping, cost].flatMap((topic) => Object.values(topic))

exerciseCases([...near, ...byXid.all], {
  ownCluster: true,
  settings: { autovacuum: 'off', wal_writer_delay: '10s' },
})
