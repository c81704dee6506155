// A platform without search and without HTTP: what the room people needs. Several issuers, as in
// the corpus of identity linking: two that are trusted for example.org, one that is trusted for nothing.

import { createOutbox } from 'hermod'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { type TestDatabase, useDatabase } from '../../../../test/support/database.ts'
import type { Config, Issuer } from '../../src/config.ts'
import { migrateServer } from '../../src/migrate.ts'
import { type ResolvedPerson, resolvePerson } from '../../src/people/resolve.ts'
import type { Platform } from '../../src/platform.ts'

export const issuers = {
  google: issuer('google', ['example.org']),
  okta: issuer('okta', ['example.org']),
  evil: issuer('evil', []),
} as const

function issuer(name: string, trustedDomains: readonly string[]): Issuer {
  const url = `https://${name}.test`
  return {
    ...{ name, issuer: url, audience: 'hermod', jwksUri: `${url}/jwks`, trustedDomains },
    algorithms: ['ES256'],
  }
}

export interface TestPeople {
  readonly db: TestDatabase
  readonly platform: Platform
  /** A log-in with a verified address, unless told otherwise. */
  signIn(
    at: keyof typeof issuers,
    subject: string,
    email?: string,
    more?: { verified?: boolean; name?: string },
  ): Promise<ResolvedPerson>
}

export function usePeople(): TestPeople {
  const db = useDatabase()
  let platform: Platform | undefined
  beforeAll(async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 20 })
    db.closeAtEnd(() => pool.end())
    const config = { issuers: Object.values(issuers), defaultRole: 'editor', outbox: true }
    platform = {
      ...{ config: config as unknown as Config, pool, outbox: createOutbox({ pool }) },
      ...{ search: undefined as never, log: pino({ level: 'silent' }), clock: () => new Date() },
    }
    await migrateServer(pool)
  })
  afterAll(() => platform?.outbox.close())
  const opened = (): Platform => {
    if (platform === undefined) throw new Error('usePeople(): exists only inside tests')
    return platform
  }
  return {
    db,
    get platform() {
      return opened()
    },
    signIn: (at, subject, email, { verified = true, name } = {}) =>
      resolvePerson(opened(), {
        ...{ issuer: issuers[at], subject, emailVerified: verified },
        ...(email !== undefined && { email }),
        ...(name !== undefined && { name }),
      }),
  }
}
