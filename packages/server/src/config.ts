/** The configuration of a server, complete and frozen. `read-config.ts` makes it. */
import type { Role } from './permissions.ts'
import type { RetentionConfig } from './retention-settings.ts'

export const workspaceProviders = ['google', 'local', 's3', 'azure'] as const
export type WorkspaceProvider = (typeof workspaceProviders)[number]

/** One OIDC issuer whose tokens are accepted. */
export interface Issuer {
  /** The provider of the identities it vouches for: google, okta, dex. */
  readonly name: string
  /** Exactly the `iss` of its tokens. */
  readonly issuer: string
  readonly audience: string
  readonly jwksUri: string
  readonly algorithms: readonly string[]
  /** Domains whose verified addresses it may vouch for; none = it never links by e-mail. */
  readonly trustedDomains: readonly string[]
  /** Claim that holds roles or groups, and what they mean here. */
  readonly roleClaim?: string
  readonly roles?: Readonly<Record<string, Role>>
}

export interface Config {
  readonly databaseUrl: string
  /** The database of the embedded search engine; the same one when left out. */
  readonly searchDatabaseUrl: string
  readonly host: string
  readonly port: number
  /** Signs cursors; at least 32 bytes. */
  readonly secret: string
  readonly issuers: readonly Issuer[]
  /** Role of a person seen for the first time. */
  readonly defaultRole: Role
  readonly workspace: { readonly provider: WorkspaceProvider; readonly folder: string }
  /** How much of an address the audit trail keeps. */
  readonly auditIp: 'full' | 'truncated' | 'none'
  /** Proxies in front: none, how many, or their networks. */
  readonly trustProxy: false | number | readonly string[]
  readonly limits: {
    readonly bodyBytes: number
    /** Bodies of documents and imports. */
    readonly documentBytes: number
    readonly perMinute: number
  }
  /** What the outbox keeps for how long, and where it goes then; the defaults of the engine when empty. */
  readonly retention: RetentionConfig
  /** Development sign-in; refused on anything but loopback. */
  readonly development: boolean
  /** Off only to measure what it costs. */
  readonly outbox: boolean
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
}
