/**
 * API tokens of both people are revoked by the merge: they were granted to somebody else. Undoing
 * the merge does not bring them back.
 */
import type { Reference } from './reference.ts'

export const tokenReferences: Reference<readonly string[]> = {
  name: 'tokens',

  async count(db, { from, into }) {
    const { rows } = await db.query<{ n: number }>(
      `select count(*)::int as n from hermod.api_token
        where person_id in ($1, $2) and revoked_at is null`,
      [from, into],
    )
    return { 'api_token.revoked_at': rows[0]?.n ?? 0 }
  },

  async move(tx, { from, into }, by) {
    const { rows } = await tx.query<{ id: string }>(
      `update hermod.api_token set revoked_at = now(), revoked_by = $3
        where person_id in ($1, $2) and revoked_at is null returning id`,
      [from, into, by],
    )
    return rows.map(({ id }) => id)
  },

  restore: async () => {},
}
