// Cases 42 and 54, and invariant I12: ledgers, crashes and polite stops.

import { exerciseCases } from '../../../../test/support/case.ts'
import * as ledger from './cases/ledger.ts'
import * as stopping from './cases/stopping.ts'

exerciseCases([...Object.values(ledger), ...Object.values(stopping)], { ownCluster: false })
