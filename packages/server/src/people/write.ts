/** The few writes that every change of a person is made of. */
import type { Role } from '../actor.ts'
import type { Tx } from '../platform.ts'
import { notFound, Problem } from '../problems.ts'

export interface LockedPerson {
  readonly id: string
  readonly displayName: string
  readonly role: Role
  readonly version: string
}

/** Nobody else changes, links or merges this person until the transaction ends. */
export async function lockPerson(tx: Tx, personId: string): Promise<void> {
  await tx.query('select from hermod.person where id = $1 for update', [personId])
}

/** Locked in a fixed order. People who were merged or removed cannot be changed. */
export async function lockLiving(tx: Tx, ids: readonly string[]): Promise<LockedPerson[]> {
  const { rows } = await tx.query(
    `select id, display_name, role, version, merged_into, deleted_at is not null as deleted
       from hermod.person where id = any ($1::bigint[]) order by id for update`,
    [ids],
  )
  return ids.map((id) => {
    const row = rows.find((each) => each.id === id)
    if (row === undefined) throw notFound('person')
    if (row.merged_into !== null) throw mergedAway(id, row.merged_into)
    if (row.deleted) throw notFound('person')
    return { id, displayName: row.display_name, role: row.role, version: row.version }
  })
}

function mergedAway(id: string, mergedInto: string): Problem {
  return new Problem('HMD_CONFLICT', `Person ${id} was merged into person ${mergedInto}.`, {
    facts: { mergedInto },
  })
}

/** The version after it. */
export async function touch(tx: Tx, personId: string): Promise<string> {
  const { rows } = await tx.query<{ version: string }>(
    'update hermod.person set version = version + 1, updated_at = now() where id = $1 returning version',
    [personId],
  )
  return rows[0]?.version ?? '0'
}

export async function makePrimary(tx: Tx, identityId: string): Promise<void> {
  await tx.query('update hermod.person_identity set is_primary = true where id = $1', [identityId])
}
