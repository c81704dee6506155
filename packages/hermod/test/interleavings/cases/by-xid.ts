// The cases of numbering again, where a window reaches back too far to be read by id alone.

import { type Case, defineCase } from '../../../../../test/support/case.ts'
import * as numbering from './numbering.ts'

const NEVER_NEAR = `create or replace function outbox.near_ids() returns integer
  language sql immutable parallel safe return -1`

export function byXid({ title, run }: Case): Case {
  return defineCase(`${title}, by xid`, async (env) => {
    await env.db.query(NEVER_NEAR)
    await run(env)
  })
}

export const all = Object.values(numbering).map(byXid)
