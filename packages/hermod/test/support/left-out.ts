// Which cases of the conformance suite an engine's test leaves out, and why: told to the reporter, so
// that scripts/search-table.mjs can put it into the table of engines and cases.

import { type TestContext, test } from 'vitest'
import type { Exercise } from '../../src/testing/index.ts'

declare module 'vitest' {
  interface TaskMeta {
    leftOut?: Exercise['leftOut']
  }
}

/** Inside the `describe` of the exercise. */
export function tellLeftOut({ leftOut }: Exercise): void {
  test('what it leaves out is told', ({ task }: TestContext) => {
    task.meta.leftOut = leftOut
  })
}
