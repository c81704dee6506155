/** What of a person a caller gets to see. */
import type { Actor } from '../actor.ts'
import type { Asked } from '../platform.ts'
import { identitiesOf, mergesInto, type Person } from './queries.ts'

/** As much of a person as this caller may see. */
export async function personFor(
  db: Asked,
  actor: Actor,
  { id, displayName, createdAt, updatedAt, role }: Person,
): Promise<object> {
  const everybodySees = { id, displayName, createdAt, updatedAt }
  const admin = actor.permissions.has('person:admin')
  if (!admin && actor.personId !== id) return everybodySees
  const identities = await identitiesOf(db, id)
  const merges = admin ? await mergesInto(db, id) : undefined
  return { ...everybodySees, role, identities, ...(merges !== undefined && { merges }) }
}
