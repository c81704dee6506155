/** Everything that must be done now and then, by whoever gets the try-lock. */
import type { Database } from '../database.ts'
import type { ResolvedWorkerOptions } from '../options.ts'
import type { Listener } from '../telemetry.ts'

export class Upkeep {
  constructor(_db: Database, _options: ResolvedWorkerOptions, _listener: Listener) {}
  start(): void {}
  async once(): Promise<void> {}
  async stop(): Promise<void> {}
}
