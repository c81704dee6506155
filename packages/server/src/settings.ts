/**
 * Every setting of the server: its place in `hermod.toml`, its variable, its allowed values and its
 * default. One list; docs/operations/deploy.md shows exactly these.
 */
import type { Role } from './actor.ts'
import { type Config, type Issuer, workspaceProviders } from './config.ts'
import { readIssuers } from './read-issuers.ts'
import { readProxies } from './read-proxies.ts'
import { retentionSettings } from './retention-settings.ts'
import { oneOf, type Read, type Setting, setting, text, whole } from './setting.ts'

const roles: readonly Role[] = ['reader', 'editor', 'operator', 'admin']
const logLevels: readonly Config['logLevel'][] = [
  ...(['fatal', 'error', 'warn', 'info'] as const),
  ...(['debug', 'trace', 'silent'] as const),
]
const secretBytesMin = 32

export const settings: readonly Setting[] = [
  setting('databaseUrl', {
    variables: ['DATABASE_URL', 'HERMOD_DATABASE_URL'],
    says: 'the database; a primary, PostgreSQL 14 or newer',
    masked: true as const,
    example: 'postgres://user:password@host:5432/hermod',
    read: databaseAddress,
  }),
  setting('searchDatabaseUrl', {
    says: 'database of the embedded search engine; empty = the same',
    masked: true as const,
    example: 'postgres://user:password@host:5432/search',
    fallback: '',
    read: (given) => (given === '' ? { value: '' } : databaseAddress(given)),
  }),
  setting('host', {
    says: 'address to listen on; 0.0.0.0 = all',
    fallback: '127.0.0.1',
    example: '0.0.0.0',
    read: text(1, 253),
  }),
  setting('port', {
    says: 'port to listen on; 0 = a free one',
    fallback: 4400,
    example: '4400',
    read: whole(0, 65_535),
  }),
  setting('secret', {
    says: 'signs cursors; the same for all servers',
    masked: true as const,
    example: 'the output of: openssl rand -hex 32',
    read: secret,
  }),
  setting('issuers', {
    says: 'OIDC issuers whose tokens are accepted; as a variable: JSON',
    fallback: [],
    example: '[{"name":"google", …}]',
    read: (given): Read<readonly Issuer[]> => readIssuers(given, roles),
  }),
  setting('defaultRole', {
    says: 'role of a person seen for the first time',
    fallback: 'reader',
    example: 'reader',
    read: oneOf(roles),
  }),
  setting('workspace.provider', {
    says: 'where documents live when a request does not say',
    fallback: 'local',
    example: 'local',
    read: oneOf(workspaceProviders),
  }),
  setting('workspace.folder', {
    says: 'files of the provider local',
    fallback: './documents',
    example: '/var/lib/hermod/documents',
    read: text(1, 4_096),
  }),
  setting('auditIp', {
    says: 'how much of an address the audit trail keeps',
    fallback: 'truncated',
    example: 'truncated',
    read: oneOf(['full', 'truncated', 'none']),
  }),
  setting('trustProxy', {
    says: 'proxies of yours that X-Forwarded-For is believed from: how many, or their networks',
    fallback: false,
    example: '1',
    read: readProxies,
  }),
  setting('limits.bodyBytes', {
    says: 'largest body of a request',
    fallback: 1_048_576,
    example: '1048576',
    read: whole(1_024, 1_073_741_824),
  }),
  setting('limits.documentBytes', {
    says: 'largest body of a document',
    fallback: 4_194_304,
    example: '4194304',
    read: whole(1_024, 1_073_741_824),
  }),
  setting('limits.perMinute', {
    says: 'requests per person and minute',
    fallback: 1_200,
    example: '1200',
    read: whole(1, 10_000_000),
  }),
  setting('logLevel', {
    says: 'how much is logged',
    fallback: 'info',
    example: 'info',
    read: oneOf(logLevels),
  }),
  ...retentionSettings,
]

function databaseAddress(given: unknown): Read<string> {
  const fits = typeof given === 'string' && URL.canParse(given) && /^postgres(ql)?:$/.test(new URL(given).protocol)
  return fits ? { value: given } : { must: 'must be a URL that starts with postgres:// (got something else)' }
}

function secret(given: unknown): Read<string> {
  const bytes = typeof given === 'string' ? Buffer.byteLength(given) : 0
  return bytes >= secretBytesMin
    ? { value: given as string }
    : { must: `must have at least ${secretBytesMin} bytes (got ${bytes})` }
}
