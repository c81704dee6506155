// Random scripts of numbering. A failing one is repeated with
// HERMOD_SEED=<seed> npx vitest run packages/hermod/test/interleavings/any-order.test.ts

import { randomInt } from 'node:crypto'
import { exerciseCases } from '../../../../test/support/case.ts'
import { anyOrder } from './cases/any-order.ts'

const { HERMOD_SEED: given, HERMOD_SEEDS: count = '4' } = process.env
const seeds = given
  ? [Number(given)]
  : [1, 1029047451, ...Array.from({ length: Number(count) - 2 }, () => randomInt(2 ** 31))]

exerciseCases(seeds.map(anyOrder), { ownCluster: true, settings: { autovacuum: 'off' } })
