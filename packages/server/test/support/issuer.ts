// An OIDC issuer of our own on loopback: real keys, real signatures, a real JWKS endpoint. Only the
// sign-in page is missing.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Issuer } from '../../src/config.ts'

export interface TestIssuer {
  readonly config: Issuer
  /** What everybody may know, and some take for a shared secret. */
  readonly publicKeyPem: string
  /** A token this issuer signs; claims override the usual ones, `undefined` removes one. */
  token(claims: JWTPayload, header?: { alg?: string; kid?: string; typ?: string }): Promise<string>
  close(): Promise<void>
}

export async function startIssuer(
  name: string,
  more: Partial<Pick<Issuer, 'trustedDomains' | 'roles'>> = {},
): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const kid = `${name}-1`
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] }
  const server = await listen(JSON.stringify(jwks))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config: Issuer = {
    name,
    issuer,
    audience: 'hermod',
    jwksUri: `${issuer}/jwks`,
    algorithms: ['ES256'],
    trustedDomains: [],
    roleClaim: 'roles',
    roles: { reader: 'reader', editor: 'editor', operator: 'operator', admin: 'admin' },
    ...more,
  }
  const token: TestIssuer['token'] = (claims, header) => {
    const now = Math.floor(Date.now() / 1000)
    const usual = { iss: issuer, aud: 'hermod', iat: now, auth_time: now, exp: now + 600 }
    const payload = Object.fromEntries(
      Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined),
    )
    return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid, typ: 'JWT', ...header }).sign(privateKey)
  }
  const publicKeyPem = await exportSPKI(publicKey)
  return { config, publicKeyPem, token, close: () => closed(server) }
}

async function listen(body: string): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
