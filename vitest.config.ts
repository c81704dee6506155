// How tests run: three child processes, since tests wait as much as they work and the budget of the suite is stated for
// two cores, and one PostgreSQL cluster for the whole run.

import { defineConfig } from 'vitest/config'
import { SlowFirst } from './test/support/slow-first.ts'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // The files that a process runs share what they import: loading it again for each took a quarter of the CPU time.
    // Whoever replaces a module or a global puts it back (see test/support/README.md).
    isolate: false,
    cache: false,
    // What is compiled is loaded as it is: compiling it again for every file of the server took 0.3 s.
    server: { deps: { external: [/\/packages\/hermod\/dist\//, /\/\.hermod\/ablations\//] } },
    maxWorkers: 3,
    sequence: { sequencer: SlowFirst },
    // On a machine that others load too, a wait may run out: CI tries such a test once more and says so.
    retry: process.env.CI === undefined ? 0 : 1,
    testTimeout: process.env.CI === undefined ? 30_000 : 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
  },
})
