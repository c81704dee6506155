/** Reads of people: one (merged ones are followed), lists, identities, merges, the audit trail. */
import type { Role } from '../actor.ts'
import type { Place } from '../place.ts'
import type { Asked } from '../platform.ts'
import { folded, type IdentityType } from './rules.ts'

export interface Person {
  readonly id: string
  readonly displayName: string
  readonly role: Role
  readonly version: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface Identity {
  readonly id: string
  readonly type: IdentityType
  readonly provider: string
  readonly value: string
  readonly primary: boolean
  readonly verifiedAt: Date | null
  readonly createdAt: Date
}

const PERSON = `p.id, p.display_name as "displayName", p.role, p.version,
  p.created_at as "createdAt", p.updated_at as "updatedAt"`

/** The person behind this id today: merges are followed. Undefined = nobody. */
export async function findPerson(db: Asked, id: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>(
    `select ${PERSON} from hermod.person p
      where p.id = hermod.current_person($1) and p.deleted_at is null`,
    [id],
  )
  return rows[0]
}

export interface PeopleQuestion {
  /** How the name begins, or a whole address; those who see addresses may begin one too. */
  readonly q: string | undefined
  readonly asker: { readonly personId: string | null; readonly seesAddresses: boolean }
  /** Name (lower case) and id of the last row of the page before. */
  readonly after: Place | undefined
  readonly limit: number
}

export interface ListedPerson extends Person {
  /** What the list is sorted by. */
  readonly sort: string
}

/**
 * People whose name begins with this text, or whose address it is; each uses its own index. An address that the asker may not see is
 * compared as a whole: beginnings would give it away letter by letter.
 */
const FOUND = `join (
    select n.id from hermod.person n
     where n.deleted_at is null and lower(n.display_name) collate "C" like lower($4::text) || '%'
    union
    select i.person_id from hermod.person_identity i
     where i.type = 'email' and i.deleted_at is null and i.key like $5 || '%'
       and ($6::boolean or i.person_id = $7::bigint or i.key = $8)) f on f.id = p.id`

/** By name; nobody who was merged or removed. */
export async function listPeople(db: Asked, { q, asker, after, limit }: PeopleQuestion): Promise<ListedPerson[]> {
  const [name = null, id = null] = after ?? []
  const wanted = q === undefined ? [] : [escaped(q), escaped(folded(q)), asker.seesAddresses, asker.personId, folded(q)]
  const { rows } = await db.query<ListedPerson>(
    `select ${PERSON}, lower(p.display_name) as sort from hermod.person p ${q === undefined ? '' : FOUND}
      where p.deleted_at is null and ($1::text is null
        or (lower(p.display_name) collate "C", p.id) > ($1::text collate "C", $2::bigint))
      order by lower(p.display_name) collate "C", p.id limit $3`,
    [name, id, limit, ...wanted],
  )
  return rows
}

/** What a person types is text, not a pattern. */
function escaped(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}

/** The live ones, the primary first. */
export async function identitiesOf(db: Asked, personId: string): Promise<Identity[]> {
  const { rows } = await db.query<Identity>(
    `select id, type, provider, value, is_primary as primary, verified_at as "verifiedAt",
            created_at as "createdAt"
       from hermod.person_identity where person_id = $1 and deleted_at is null
      order by is_primary desc, id`,
    [personId],
  )
  return rows
}

export interface Merge {
  readonly id: string
  readonly from: string
  readonly fromName: string
  readonly reason: string
  readonly doneAt: Date
}

/** Who was merged into this person and still is; the newest first, which is the order to undo them. */
export async function mergesInto(db: Asked, personId: string): Promise<Merge[]> {
  const { rows } = await db.query<Merge>(
    `select m.id, m.from_person as from, f.display_name as "fromName", m.reason, m.done_at as "doneAt"
       from hermod.person_merge m join hermod.person f on f.id = m.from_person
      where m.into_person = $1 and m.undone_at is null order by m.id desc limit 200`,
    [personId],
  )
  return rows
}

export interface PersonAudit {
  readonly id: string
  readonly action: string
  readonly changes: Readonly<Record<string, unknown>>
  readonly reason: string | null
  readonly actorId: string | null
  readonly identity: string | null
  readonly endpoint: string | null
  readonly requestId: string | null
  readonly createdAt: Date
}

/** What was decided about this id and every id that was merged into it; the newest first. */
export async function auditOf(
  db: Asked,
  { personId, before, limit }: { personId: string; before: string | null; limit: number },
): Promise<PersonAudit[]> {
  const { rows } = await db.query<PersonAudit>(
    `select id, action, changes, reason, actor_id as "actorId", identity, endpoint,
            request_id as "requestId", created_at as "createdAt"
       from hermod.person_audit
      where person_id = any (hermod.selves_of($1)) and ($2::bigint is null or id < $2)
      order by id desc limit $3`,
    [personId, before, limit],
  )
  return rows
}

export async function personExists(db: Asked, id: string): Promise<boolean> {
  const { rowCount } = await db.query('select from hermod.person where id = $1', [id])
  return rowCount === 1
}
