// The order of test files: those that take longest first, so that no process is left alone with one of them at the end.

import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** From 20 s on, on two cores. A name that is no longer true costs nothing but its place. */
const slow = [
  'test/docs.test.ts',
  'test/chaos/smoke.test.ts',
  'test/ablations/share-1.test.ts',
  'test/ablations/share-2.test.ts',
  'test/ablations/share-3.test.ts',
  'packages/hermod/test/model/lanes.test.ts',
  'packages/hermod/test/upkeep/retention-by-day.test.ts',
  'packages/hermod/test/search/typesense.test.ts',
  'packages/hermod/test/cli/cli.test.ts',
  'packages/server/test/dev/start.test.ts',
  'packages/hermod/test/interleavings/idle.test.ts',
]

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}

function isSlow({ moduleId }: TestSpecification): boolean {
  return slow.some((path) => moduleId.endsWith(path))
}
