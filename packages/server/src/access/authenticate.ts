/** From the Authorization header to a principal: OIDC tokens of configured issuers, API tokens. */
import type { FastifyRequest } from 'fastify'
import type { Principal } from '../actor.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'

export type Authenticate = (request: FastifyRequest) => Promise<Principal>

export function authenticator(_platform: Platform): Authenticate {
  return async () => {
    throw new Problem('HMD_UNAUTHENTICATED', 'Send a bearer token.')
  }
}
