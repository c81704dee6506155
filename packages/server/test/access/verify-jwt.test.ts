// Tokens of issuers after RFC 8725, against a real issuer with real keys on loopback.
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jwtVerifier, trusted, type VerifyJwt } from '../../src/access/verify-jwt.ts'
import { startIssuer, type TestIssuer } from '../support/issuer.ts'

let issuer: TestIssuer
let stranger: TestIssuer
let verify: VerifyJwt
const seconds = () => Math.floor(Date.now() / 1000)
const usual = { sub: 'ada' }

beforeAll(async () => {
  issuer = await startIssuer('google')
  stranger = await startIssuer('stranger')
  verify = jwtVerifier([trusted(issuer.config)], () => new Date())
})
afterAll(async () => {
  await issuer.close()
  await stranger.close()
})

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const claims = (more: JWTPayload = {}) => ({
  iss: issuer.config.issuer,
  aud: 'hermod',
  sub: 'ada',
  exp: seconds() + 600,
  ...more,
})

/** The public key as an HMAC secret: what a verifier that trusts `alg` falls for. */
function hmacWithPublicKey(): string {
  const head = `${part({ alg: 'HS256', kid: 'google-1', typ: 'JWT' })}.${part(claims())}`
  return `${head}.${createHmac('sha256', issuer.publicKeyPem).update(head).digest('base64url')}`
}

/** Signed by a key the token itself brings along. */
async function withOwnKey(): Promise<string> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  return new SignJWT(claims())
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT', jwk: await exportJWK(publicKey) })
    .sign(privateKey)
}

describe('accepted', () => {
  it.each([
    ['JWT', 'JWT'],
    ['an access token', 'at+jwt'],
    ['an access token with its whole name', 'application/at+jwt'],
  ])('%s', async (_what, typ) => {
    const { claims } = await verify(await issuer.token(usual, { typ }))
    expect(claims.sub).toBe('ada')
  })

  it('a token that does not say its type, as Dex gives out', async () => {
    const token = await issuer.token(usual, { typ: undefined as never })
    expect((await verify(token)).claims.sub).toBe('ada')
  })

  it('clocks may differ by a minute', async () => {
    await verify(await issuer.token({ ...usual, exp: seconds() - 50 }))
    await verify(await issuer.token({ ...usual, nbf: seconds() + 50 }))
  })

  it('one of several audiences', async () => {
    await verify(await issuer.token({ ...usual, aud: ['other', 'hermod'] }))
  })
})

describe('refused with 401', () => {
  const cases: [string, () => Promise<string> | string][] = [
    ['alg none', () => `${part({ alg: 'none', typ: 'JWT' })}.${part(claims())}.`],
    ['alg None', () => `${part({ alg: 'None', typ: 'JWT' })}.${part(claims())}.`],
    ['HS256 with the public key', hmacWithPublicKey],
    ['its own key in the header', withOwnKey],
    ['another issuer', () => stranger.token(usual)],
    ['another issuer that says it is ours', () => stranger.token({ ...usual, iss: issuer.config.issuer })],
    ['iss with a slash more', () => issuer.token({ ...usual, iss: `${issuer.config.issuer}/` })],
    ['no iss', () => issuer.token({ ...usual, iss: undefined as never })],
    ['iss that every object has', () => issuer.token({ ...usual, iss: '__proto__' })],
    ['another audience', () => issuer.token({ ...usual, aud: 'payroll' })],
    ['no audience', () => issuer.token({ ...usual, aud: undefined as never })],
    ['expired', () => issuer.token({ ...usual, exp: seconds() - 61 })],
    ['no expiry', () => issuer.token({ ...usual, exp: undefined as never })],
    ['not valid yet', () => issuer.token({ ...usual, nbf: seconds() + 120 })],
    ['another type', () => issuer.token(usual, { typ: 'logout+jwt' })],
    ['no subject', () => issuer.token({})],
    ['an empty subject', () => issuer.token({ sub: '' })],
    ['a subject of 256 characters', () => issuer.token({ sub: 'a'.repeat(256) })],
    ['a kid nobody has', () => issuer.token(usual, { kid: 'unknown' })],
    ['a kid that is a path', () => issuer.token(usual, { kid: '../../../../dev/null' })],
    ['a kid that is a URL', () => issuer.token(usual, { kid: 'http://127.0.0.1:9/jwks' })],
    [
      'a changed payload',
      async () => {
        const [head, , signature] = (await issuer.token(usual)).split('.')
        return `${head}.${part(claims({ sub: 'root' }))}.${signature}`
      },
    ],
    ['a cut signature', async () => (await issuer.token(usual)).slice(0, -4)],
    ['no signature', async () => (await issuer.token(usual)).replace(/[^.]*$/, '')],
    ['four parts', async () => `${await issuer.token(usual)}.x`],
    ['garbage', () => 'a.b.c'],
    ['one word', () => 'token'],
  ]
  it.each(cases)('%s', async (_what, token) => {
    await expect(verify(await token())).rejects.toMatchObject({ code: 'HMD_UNAUTHENTICATED' })
  })
})

describe('keys', () => {
  it('an issuer that is away is 503, not 401', async () => {
    const gone = await startIssuer('gone')
    const token = await gone.token(usual)
    await gone.close()
    const verifyGone = jwtVerifier([trusted(gone.config)], () => new Date())
    await expect(verifyGone(token)).rejects.toMatchObject({
      code: 'HMD_UNAVAILABLE',
      headers: { 'retry-after': '5' },
    })
  })

  it('an issuer that answers with a page is 503', async () => {
    const server = createServer((_request, response) => response.end('<h1>Sign in</h1>'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const config = { ...issuer.config, jwksUri: `http://127.0.0.1:${port}/` }
    const verifyHtml = jwtVerifier([trusted(config)], () => new Date())
    await expect(verifyHtml(await issuer.token(usual))).rejects.toMatchObject({ status: 503 })
    await new Promise((resolve) => server.close(resolve))
  })

  it('a header that names another place for keys is not followed', async () => {
    let asked = 0
    const server = createServer((_request, response) => {
      asked++
      response.end('{"keys":[]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const token = await issuer.token(usual, { kid: url, jku: url, x5u: url } as never)
    await expect(verify(token)).rejects.toMatchObject({ status: 401 })
    expect(asked).toBe(0)
    await new Promise((resolve) => server.close(resolve))
  })

  it('unknown keys do not make us ask the issuer each time', async () => {
    let asked = 0
    const server = createServer((_request, response) => {
      asked++
      response.setHeader('content-type', 'application/json').end('{"keys":[]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const verifyEmpty = jwtVerifier([trusted({ ...issuer.config, jwksUri })], () => new Date())
    for (let i = 0; i < 20; i++) {
      const token = await issuer.token(usual, { kid: `guess-${i}` })
      await expect(verifyEmpty(token)).rejects.toMatchObject({ status: 401 })
    }
    expect(asked).toBe(1)
    await new Promise((resolve) => server.close(resolve))
  })
})
