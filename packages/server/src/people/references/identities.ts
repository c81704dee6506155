/** Log-ins of a merged person: they lead to the survivor, who keeps the primary one of theirs. */
import type { Tx } from '../../platform.ts'
import type { Pair, Reference } from './reference.ts'

interface Before {
  readonly moved: readonly string[]
  readonly fromPrimary: string | null
  readonly intoPrimary: string | null
}

export const identityReferences: Reference<Before> = {
  name: 'identities',

  async count(db, { from }) {
    const { rows } = await db.query<{ n: number }>(
      'select count(*)::int as n from hermod.person_identity where person_id = $1 and deleted_at is null',
      [from],
    )
    return { 'person_identity.person_id': rows[0]?.n ?? 0 }
  },

  async move(tx, { from, into }) {
    const fromPrimary = await primaryOf(tx, from)
    const intoPrimary = await primaryOf(tx, into)
    const { rows } = await tx.query<{ id: string }>(
      `update hermod.person_identity
          set person_id = $2, is_primary = is_primary and $3, updated_at = now()
        where person_id = $1 and deleted_at is null returning id`,
      [from, into, intoPrimary === null],
    )
    return { moved: rows.map(({ id }) => id), fromPrimary, intoPrimary }
  },

  async restore(tx, pair, before) {
    await moveBack(tx, pair, before.moved)
    await givePrimary(tx, pair.from, before.fromPrimary)
    await givePrimary(tx, pair.into, before.intoPrimary)
  },
}

async function primaryOf(tx: Tx, personId: string): Promise<string | null> {
  const { rows } = await tx.query<{ id: string }>(
    'select id from hermod.person_identity where person_id = $1 and is_primary',
    [personId],
  )
  return rows[0]?.id ?? null
}

/** An address moves together with its log-in, even if it was added after the merge. */
async function moveBack(tx: Tx, { from, into }: Pair, moved: readonly string[]): Promise<void> {
  await tx.query(
    `update hermod.person_identity set person_id = $1, is_primary = false, updated_at = now()
      where person_id = $2 and deleted_at is null
        and (id = any ($3::bigint[]) and (subject_id is null or subject_id = any ($3::bigint[]))
          or subject_id = any ($3::bigint[]))`,
    [from, into, moved],
  )
}

/** The one it was, if it is still there; else an address, else whatever is left. */
async function givePrimary(tx: Tx, personId: string, was: string | null): Promise<void> {
  if ((await primaryOf(tx, personId)) !== null) return
  await tx.query(
    `update hermod.person_identity set is_primary = true where id =
      (select id from hermod.person_identity where person_id = $1 and deleted_at is null
        order by id is not distinct from $2 desc, type = 'email' desc, id limit 1)`,
    [personId, was],
  )
}
