/**
 * Sign-in without an issuer, for `npm start` alone: demo people get real tokens, signed with a key
 * that lives as long as this process. Only this machine may ask, and only a page of this server.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HermodError } from 'hermod'
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Type } from 'typebox'
import type { Role } from '../actor.ts'
import type { Config, Issuer } from '../config.ts'
import { answers } from '../http/responses.ts'
import { notFound, Problem } from '../problems.ts'
import type { TrustedIssuer } from './verify-jwt.ts'

export interface DemoPerson {
  readonly name: string
  readonly displayName: string
  readonly email: string
  readonly role: Role
}

/** The first one is who you are when you do not choose. */
export const demoPeople: readonly DemoPerson[] = [
  demo('ada', 'Ada Lovelace', 'admin'),
  demo('grace', 'Grace Hopper', 'operator'),
  demo('alan', 'Alan Turing', 'editor'),
  demo('edsger', 'Edsger Dijkstra', 'editor'),
  demo('hedy', 'Hedy Lamarr', 'reader'),
]

function demo(name: string, displayName: string, role: Role): DemoPerson {
  return { name, displayName, role, email: `${name}@example.org` }
}

export interface DevelopmentIssuer extends TrustedIssuer {
  token(person: DemoPerson): Promise<{ readonly token: string; readonly expiresAt: Date }>
}

const tokenMs = 12 * 3_600_000
const url = 'http://development.invalid'

const issuer: Issuer = {
  name: 'development',
  issuer: url,
  audience: 'hermod',
  jwksUri: `${url}/jwks`,
  algorithms: ['ES256'],
  trustedDomains: ['example.org'],
  roleClaim: 'roles',
  roles: { reader: 'reader', editor: 'editor', operator: 'operator', admin: 'admin' },
}

/** Refused unless the server listens on loopback only. */
export async function developmentIssuer(config: Config): Promise<DevelopmentIssuer> {
  assertPrivate(config)
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const key = { ...(await exportJWK(publicKey)), kid: 'development', alg: 'ES256', use: 'sig' }
  const token: DevelopmentIssuer['token'] = async ({ name, displayName, email, role }) => {
    const now = new Date()
    const expiresAt = new Date(now.getTime() + tokenMs)
    const claims = { email, email_verified: true, name: displayName, roles: [role] }
    const token = await new SignJWT({ ...claims, auth_time: Math.floor(now.getTime() / 1000) })
      .setProtectedHeader({ alg: 'ES256', kid: 'development', typ: 'JWT' })
      .setIssuer(issuer.issuer)
      .setAudience(issuer.audience)
      .setSubject(name)
      .setIssuedAt(now)
      .setExpirationTime(expiresAt)
      .sign(privateKey)
    return { token, expiresAt }
  }
  return { issuer, keys: createLocalJWKSet({ keys: [key] }), token }
}

function assertPrivate({ host, trustProxy }: Config): void {
  if (isLoopback(host) && !trustProxy) return
  const why = trustProxy ? 'behind a proxy' : `on ${host}`
  throw new HermodError('HMD_OPTION_INVALID', `the development sign-in does not run ${why}`, {
    field: 'development',
    fix: 'Listen on 127.0.0.1 without trustProxy, or turn development off and configure an issuer.',
  })
}

export function isLoopback(host: string | undefined): boolean {
  const plain = host?.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/, '')
  return plain === 'localhost' || plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain ?? '')
}

const signedIn = Type.Object(
  {
    token: Type.String(),
    expiresAt: Type.String({ format: 'date-time' }),
    person: Type.Object({ name: Type.String(), displayName: Type.String(), role: Type.String() }),
  },
  { description: 'A token for the Authorization header' },
)

const signInBody = Type.Object(
  { person: Type.String({ minLength: 1, maxLength: 50, examples: ['ada'] }) },
  { additionalProperties: false },
)

export function developmentRoutes(app: FastifyInstance, development: DevelopmentIssuer): void {
  const schema = {
    tags: ['development'],
    operationId: 'developmentSignIn',
    security: [],
    summary: 'A token for one of the demo people; exists only under npm start',
    body: signInBody,
    response: answers({ 200: signedIn }, 404, 413, 415),
  }
  const config = { permission: 'public' as const, bucket: 'signIn' as const }
  app.post('/api/v2/dev/sign-in', { config, schema }, async (request) => {
    assertFromHere(request)
    const { person: wanted } = request.body as { person: string }
    const person = demoPeople.find(({ name }) => name === wanted)
    if (person === undefined) throw notFound(`demo person ${wanted}`)
    const { token, expiresAt } = await development.token(person)
    return { token, expiresAt: expiresAt.toISOString(), person }
  })
}

/**
 * The caller is on this machine, uses a local name (a foreign name that resolves to 127.0.0.1 shows
 * in the Host header), and is not a page of another site.
 */
function assertFromHere({ raw, headers }: FastifyRequest): void {
  const { host = '', origin } = headers
  const here =
    isLoopback(raw.socket.remoteAddress) &&
    isLoopback(host.replace(/:\d+$/, '')) &&
    headers['x-forwarded-for'] === undefined &&
    headers.forwarded === undefined &&
    (origin === undefined || origin === `http://${host}`) &&
    [undefined, 'same-origin', 'none'].includes(headers['sec-fetch-site'] as string | undefined)
  if (here) return
  throw new Problem('HMD_FORBIDDEN', 'The development sign-in answers only pages of this machine.')
}
