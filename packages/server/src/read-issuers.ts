/** The OIDC issuers of a configuration: a list of tables in `hermod.toml`, or JSON in a variable. */
import { didYouMean } from 'hermod/cli'
import type { Role } from './actor.ts'
import type { Issuer } from './config.ts'
import type { Read } from './setting.ts'

type Given = Readonly<Record<string, unknown>>

const known = [...['name', 'issuer', 'audience', 'jwksUri', 'algorithms', 'trustedDomains', 'roleClaim'], 'roles']
/** Signatures only: `none` and shared secrets are never accepted. */
const algorithmsKnown = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
algorithmsKnown.push('ES256', 'ES384', 'ES512', 'EdDSA')

export function readIssuers(given: unknown, roles: readonly Role[]): Read<readonly Issuer[]> {
  const list = typeof given === 'string' ? parsed(given) : given
  if (!Array.isArray(list)) return { must: 'must be a list of issuers' }
  const problems = list.flatMap((each, at) => problemsOf(each, `[${at}]`, roles))
  problems.push(...namedTwice(list))
  if (problems.length > 0) return { must: problems.join('; ') }
  return { value: Object.freeze(list.map(complete)) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function problemsOf(given: unknown, at: string, roles: readonly Role[]): string[] {
  if (typeof given !== 'object' || given === null) return [`${at} must be a table`]
  const issuer = given as Given
  const problems = Object.keys(issuer)
    .filter((key) => !known.includes(key))
    .map((key) => `${at}.${key} is not known${didYouMean(key, known)}`)
  const must = (key: string, fits: boolean, says: string) => {
    if (!fits) problems.push(`${at}.${key} must be ${says}`)
  }
  must('name', /^[a-z][a-z0-9_-]{0,62}$/.test(String(issuer.name)), 'a lower-case name like google')
  for (const key of ['issuer', 'jwksUri']) must(key, isAddress(issuer[key]), 'an https:// address')
  must('audience', isText(issuer.audience), 'the audience of its tokens')
  const { algorithms = ['RS256'], trustedDomains = [], roleClaim = '', roles: meant = {} } = issuer
  must('algorithms', isList(algorithms, algorithmsKnown), `some of ${algorithmsKnown.join(', ')}`)
  must('trustedDomains', isList(trustedDomains), 'a list of domains')
  must('roleClaim', typeof roleClaim === 'string', 'the name of a claim')
  must('roles', isList(Object.values(meant as Given), roles), `a table of ${roles.join(', ')}`)
  return problems
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/** Keys must come over HTTPS; plain HTTP is allowed on loopback, for tests and local proxies. */
function isAddress(value: unknown): boolean {
  if (!URL.canParse(String(value))) return false
  const { protocol, hostname } = new URL(String(value))
  const near = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  return protocol === 'https:' || (protocol === 'http:' && near)
}

function isList(value: unknown, words?: readonly string[]): boolean {
  return Array.isArray(value) && value.every((each) => isText(each) && (words === undefined || words.includes(each)))
}

function namedTwice(list: readonly unknown[]): string[] {
  const names = list.map((each) => String((each as Given | null)?.name))
  const repeated = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return [...repeated].map((name) => `${name} is there twice`)
}

function complete(given: Given): Issuer {
  const usual = { algorithms: ['RS256'], trustedDomains: [] }
  return Object.freeze({ ...usual, ...given }) as unknown as Issuer
}
