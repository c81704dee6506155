// The public door `hermod/embedded`: PostgreSQL from npm, for tests and for trying things out.

export { EmbeddedError, type EmbeddedErrorCode } from './errors.ts'
export {
  type CopyOptions,
  copyCluster,
  type Postgres,
  type StartOptions,
  startPostgres,
} from './postgres.ts'
export type { StopMode } from './server.ts'
