/** Who does something, as which identity, from where: what every command is given and records. */
import type { Issuer } from './config.ts'
import type { Permission, Role } from './permissions.ts'

export type { Role } from './permissions.ts'

/** Who is asking. */
export interface Principal {
  /** Null only for the system itself (a content scan, an import by a command line). */
  readonly personId: string | null
  /** The identity used at this moment, kept by the audit trail: `email:google:ada@example.org`. */
  readonly identity: string
  readonly role: Role
  /** What the role allows, narrowed by the scopes of an API token. */
  readonly permissions: ReadonlySet<Permission>
  /** When the person last proved who they are; undefined for machines. */
  readonly signedInAt?: Date
}

/** Who is asking, and from where. */
export interface Actor extends Principal {
  /** Method and route template: `PATCH /api/v2/documents/{id}`. */
  readonly endpoint: string
  readonly userAgent: string | null
  /** As much of it as the configuration allows to keep. */
  readonly ip: string | null
  readonly requestId: string
  readonly traceparent?: string
}

/** What a token said, after its signature was checked. */
export interface VerifiedClaims {
  readonly issuer: Issuer
  readonly subject: string
  readonly email?: string
  readonly emailVerified: boolean
  readonly name?: string
}
