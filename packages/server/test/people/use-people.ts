// A platform without search and without HTTP: what the room people needs. Several issuers, as in
// the corpus of identity linking: two that are trusted for example.org, one that is trusted for nothing.

import { createOutbox } from 'hermod'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { type TestDatabase, useDatabase } from '../../../../test/support/database.ts'
import type { Actor } from '../../src/actor.ts'
import type { Config, Issuer } from '../../src/config.ts'
import { migrateServer } from '../../src/migrate.ts'
import { linkIdentity, unlinkIdentity } from '../../src/people/commands.ts'
import { mergePeople, undoMerge } from '../../src/people/merge.ts'
import { type ResolvedPerson, resolvePerson } from '../../src/people/resolve.ts'
import type { NewIdentity } from '../../src/people/rules.ts'
import { permissionsOf } from '../../src/permissions.ts'
import { type Platform, transaction } from '../../src/platform.ts'

export const issuers = {
  google: issuer('google', ['example.org']),
  okta: issuer('okta', ['example.org']),
  evil: issuer('evil', []),
} as const

function issuer(name: string, trustedDomains: readonly string[]): Issuer {
  const url = `https://${name}.test`
  return {
    name,
    issuer: url,
    audience: 'hermod',
    jwksUri: `${url}/jwks`,
    trustedDomains,
    algorithms: ['ES256'],
  }
}

/** An administrator who signed in a moment ago. */
export function admin(): Actor {
  return {
    personId: null,
    identity: 'test:admin',
    role: 'admin',
    endpoint: 'test',
    permissions: permissionsOf('admin'),
    signedInAt: new Date(),
    userAgent: null,
    ip: null,
    requestId: 'test',
  }
}

type Who = Pick<ResolvedPerson, 'personId'>

export interface TestPeople {
  readonly db: TestDatabase
  readonly platform: Platform
  /** A log-in with a verified address, unless told otherwise. */
  signIn(
    at: keyof typeof issuers,
    subject: string,
    email?: string,
    more?: { verified?: boolean; name?: string; platform?: Platform },
  ): Promise<ResolvedPerson>
  /** In words: `email google ada@example.org verified primary`. */
  identities(who: Who | undefined): Promise<string[]>
  /** What was done to a person, in order. */
  audit(who: Who): Promise<string[]>
  link(who: Who, wanted: Omit<NewIdentity, 'verified'> & { verified?: boolean }): Promise<string>
  unlink(who: Who, provider: string, value: string): Promise<void>
  /** The id of the merge. */
  merge(from: Who, into: Who): Promise<string>
  undo(mergeId: string): Promise<void>
}

export function usePeople(): TestPeople {
  const db = useDatabase()
  let platform: Platform | undefined
  beforeAll(async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 20 })
    db.closeAtEnd(() => pool.end())
    const config = { issuers: Object.values(issuers), defaultRole: 'editor', outbox: true }
    platform = {
      config: config as unknown as Config,
      pool,
      outbox: createOutbox({ pool }),
      search: undefined as never,
      log: pino({ level: 'silent' }),
      clock: () => new Date(),
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
    signIn: (at, subject, email, { verified = true, name, platform = opened() } = {}) =>
      resolvePerson(platform, {
        issuer: issuers[at],
        subject,
        emailVerified: verified,
        ...(email !== undefined && { email }),
        ...(name !== undefined && { name }),
      }),
    identities: async (who) => {
      const rows = await db.query<{ says: string }>(
        `select concat_ws(' ', type, provider, value, case when verified_at is not null then 'verified' end,
                case when is_primary then 'primary' end) as says
           from hermod.person_identity where person_id = $1 and deleted_at is null order by id`,
        [who?.personId],
      )
      return rows.map(({ says }) => says)
    },
    audit: async ({ personId }) => {
      const rows = await db.query<{ action: string }>(
        'select action from hermod.person_audit where person_id = $1 order by id',
        [personId],
      )
      return rows.map(({ action }) => action)
    },
    link: ({ personId }, wanted) =>
      transaction(opened(), (tx) => linkIdentity(opened(), tx, admin(), personId, { verified: false, ...wanted })),
    unlink: async ({ personId }, provider, value) => {
      const [row] = await db.query<{ id: string }>(
        `select id from hermod.person_identity
          where person_id = $1 and provider = $2 and value = $3 and deleted_at is null`,
        [personId, provider, value],
      )
      const identityId = row?.id ?? '0'
      await transaction(opened(), (tx) =>
        unlinkIdentity(opened(), tx, admin(), { personId, identityId, seen: undefined }),
      )
    },
    merge: async (from, into) => {
      const { mergeId } = await transaction(opened(), (tx) =>
        mergePeople(opened(), tx, admin(), {
          from: from.personId,
          into: into.personId,
          reason: 'test',
        }),
      )
      return mergeId
    },
    undo: async (mergeId) => {
      await transaction(opened(), (tx) => undoMerge(opened(), tx, admin(), { mergeId, reason: 'test' }))
    },
  }
}
