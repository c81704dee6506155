// The next Kysely, which needs Node 22: the same program on another version.

import * as kysely from 'kysely-0.29'
import { connect as connectWith } from './kysely.js'

export { close, importOrders, placeOrder } from './kysely.js'
export const connect = (url) => connectWith(url, kysely)
