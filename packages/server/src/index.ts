/** What users of the server as a library import from `hermod-server`. */
export type { Actor, Principal, Role } from './actor.ts'
export type { Config, Issuer, WorkspaceProvider } from './config.ts'
export { createPlatform, type OpenPlatform, type PlatformParts } from './create-platform.ts'
export { type App, buildApp } from './http/app.ts'
export { assertServerMigrated, migrateServer } from './migrate.ts'
export type { Platform } from './platform.ts'
export { Problem, type ProblemCode, problemCatalogue } from './problems.ts'
