/**
 * Roles of least privilege: `<prefix>_producer`, `_worker`, `_reader`, `_admin`. They cannot log in;
 * grant them to the accounts of your programs.
 */
import { type Database, type PoolClient, select, transaction } from '../database.ts'
import { HermodError } from '../errors.ts'

export const roleNames = ['producer', 'worker', 'reader', 'admin'] as const
export type RoleName = (typeof roleNames)[number]

export interface RolesOptions {
  /** First part of the names; `hermod` when left out. */
  readonly prefix?: string
}

/** Creates the roles that are missing (needs CREATEROLE for that) and grants what each one needs. */
export async function installRoles(
  db: Database,
  { prefix = 'hermod' }: RolesOptions = {},
): Promise<Record<RoleName, string>> {
  if (!/^[a-z][a-z0-9_]{0,40}$/.test(prefix)) {
    const says = 'prefix must be [a-z][a-z0-9_]*, at most 41 characters'
    throw new HermodError('HMD_OPTION_INVALID', says, { field: 'prefix' })
  }
  await transaction(db, async (client) => {
    for (const role of roleNames) await createMissing(client, `${prefix}_${role}`)
    await select(client, 'insert into outbox.grantee (prefix) values ($1) on conflict (prefix) do nothing', [prefix])
    await select(client, 'select outbox.apply_grants()')
  })
  const name = (role: RoleName) => `${prefix}_${role}`
  return {
    producer: name('producer'),
    worker: name('worker'),
    reader: name('reader'),
    admin: name('admin'),
  }
}

/** The name holds nothing but letters, digits and underscores. */
async function createMissing(client: PoolClient, name: string): Promise<void> {
  const [known] = await select(client, 'select rolname from pg_roles where rolname = $1', [name])
  if (known === undefined) await client.query(`create role ${name} nologin`)
}
