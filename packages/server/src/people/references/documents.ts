/**
 * Documents of a merged person: who made and last changed them, their people, their decisions. Where
 * both people have the same place, one row remains, and the pre-image keeps both.
 */
import type { Tx } from '../../platform.ts'
import type { Pair, Reference } from './reference.ts'

/** Rows as PostgreSQL wrote them: times keep their microseconds. */
type Rows = readonly Readonly<Record<string, unknown>>[]

interface Before {
  readonly created: readonly string[]
  readonly modified: Rows
  readonly people: Rows
  readonly approvals: Rows
}

export const documentReferences: Reference<Before> = {
  name: 'documents',

  async count(db, { from }) {
    const { rows } = await db.query<Record<string, number>>(
      `select (select count(*)::int from hermod.document where created_by = $1) as "document.created_by",
              (select count(*)::int from hermod.document where last_modified_by_person_id = $1)
                as "document.last_modified_by_person_id",
              (select count(*)::int from hermod.document_person where person_id = $1)
                as "document_person.person_id",
              (select count(*)::int from hermod.approval where person_id = $1) as "approval.person_id"`,
      [from],
    )
    return rows[0] ?? {}
  },

  async move(tx, pair) {
    await lockDocuments(tx, pair)
    return {
      created: await moveCreated(tx, pair),
      modified: await moveModified(tx, pair),
      people: await movePeople(tx, pair),
      approvals: await moveApprovals(tx, pair),
    }
  },

  async restore(tx, pair, before) {
    await lockDocuments(tx, pair)
    await restoreCreated(tx, pair, before.created)
    await restoreModified(tx, pair, before.modified)
    await restorePeople(tx, pair, before.people)
    await restoreApprovals(tx, pair, before.approvals)
  },
}

/** Waits for changes of these documents in other transactions. */
async function lockDocuments(tx: Tx, { from, into }: Pair): Promise<void> {
  await tx.query(
    `select from hermod.document where created_by in ($1, $2) or last_modified_by_person_id in ($1, $2)
        or id in (select document_id from hermod.document_person where person_id in ($1, $2))
        or id in (select document_id from hermod.approval where person_id in ($1, $2))
      order by id for update`,
    [from, into],
  )
}

async function moveCreated(tx: Tx, { from, into }: Pair): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    'update hermod.document set created_by = $2 where created_by = $1 returning id',
    [from, into],
  )
  return rows.map(({ id }) => id)
}

async function restoreCreated(tx: Tx, { from, into }: Pair, ids: readonly string[]) {
  await tx.query('update hermod.document set created_by = $1 where created_by = $2 and id = any ($3::uuid[])', [
    from,
    into,
    ids,
  ])
}

async function moveModified(tx: Tx, { from, into }: Pair): Promise<Rows> {
  const { rows } = await tx.query(
    `update hermod.document set last_modified_by_person_id = $2
      where last_modified_by_person_id = $1 returning id, to_json(modified_at) as modified_at`,
    [from, into],
  )
  return rows
}

/** A document that was changed after the merge was changed by the survivor. */
async function restoreModified(tx: Tx, { from, into }: Pair, before: Rows): Promise<void> {
  await tx.query(
    `update hermod.document d set last_modified_by_person_id = $1
       from jsonb_to_recordset($3::jsonb) as b (id uuid, modified_at timestamptz)
      where d.id = b.id and d.last_modified_by_person_id = $2 and d.modified_at = b.modified_at`,
    [from, into, JSON.stringify(before)],
  )
}

async function movePeople(tx: Tx, { from, into }: Pair): Promise<Rows> {
  const { rows } = await tx.query(
    `select f.document_id, f.relation, f.place, i.place as into_place
       from hermod.document_person f left join hermod.document_person i
         on i.document_id = f.document_id and i.relation = f.relation and i.person_id = $2
      where f.person_id = $1 order by 1, 2`,
    [from, into],
  )
  // Both were there: the survivor takes the better place.
  await tx.query(
    `with gone as (
       delete from hermod.document_person f using hermod.document_person i
        where f.person_id = $1 and i.person_id = $2
          and i.document_id = f.document_id and i.relation = f.relation returning f.*)
     update hermod.document_person i set place = least(i.place, g.place) from gone g
      where i.person_id = $2 and i.document_id = g.document_id and i.relation = g.relation`,
    [from, into],
  )
  await tx.query('update hermod.document_person set person_id = $2 where person_id = $1', [...[from, into]])
  return rows
}

const PEOPLE = `jsonb_to_recordset($3::jsonb) as b
  (document_id uuid, relation text, place integer, into_place integer)`

/** Only where the survivor is still there: a person who was removed from a document stays removed. */
async function restorePeople(tx: Tx, { from, into }: Pair, before: Rows): Promise<void> {
  const values = [from, into, JSON.stringify(before)]
  await tx.query(
    `update hermod.document_person p set person_id = $1 from ${PEOPLE}
      where b.into_place is null and p.document_id = b.document_id and p.relation = b.relation
        and p.person_id = $2 and not exists (select from hermod.document_person x
          where x.document_id = b.document_id and x.relation = b.relation and x.person_id = $1)`,
    values,
  )
  await tx.query(
    `with back as (
       insert into hermod.document_person (document_id, person_id, relation, place)
       select b.document_id, $1, b.relation, b.place from ${PEOPLE}
        where b.into_place is not null and exists (select from hermod.document_person i
          where i.document_id = b.document_id and i.relation = b.relation and i.person_id = $2)
       on conflict do nothing)
     update hermod.document_person i set place = b.into_place from ${PEOPLE}
      where b.into_place is not null and i.document_id = b.document_id
        and i.relation = b.relation and i.person_id = $2 and i.place = least(b.place, b.into_place)`,
    values,
  )
}

/** Both decided about one document: the later decision is the one that counts. */
async function moveApprovals(tx: Tx, { from, into }: Pair): Promise<Rows> {
  const { rows } = await tx.query(
    `select to_json(f) as "from", to_json(i) as "into"
       from hermod.approval f left join hermod.approval i
         on i.document_id = f.document_id and i.person_id = $2
      where f.person_id = $1 order by f.document_id`,
    [from, into],
  )
  await tx.query(
    `delete from hermod.approval a using hermod.approval b
      where a.document_id = b.document_id
        and ((a.person_id = $1 and b.person_id = $2 and b.decided_at >= a.decided_at)
          or (a.person_id = $2 and b.person_id = $1 and b.decided_at > a.decided_at))`,
    [from, into],
  )
  await tx.query('update hermod.approval set person_id = $2 where person_id = $1', [from, into])
  return rows
}

/** A decision that was changed since is the survivor's. */
async function restoreApprovals(tx: Tx, { from, into }: Pair, before: Rows): Promise<void> {
  for (const row of before) {
    const { rowCount } = await tx.query(
      `delete from hermod.approval a using jsonb_populate_record(null::hermod.approval, $2::jsonb) f
          left join jsonb_populate_record(null::hermod.approval, $3::jsonb) i on true
        where a.document_id = f.document_id and a.person_id = $1
          and a.decided_at = greatest(f.decided_at, i.decided_at)`,
      [into, JSON.stringify(row.from), JSON.stringify(row.into ?? {})],
    )
    if (rowCount !== 1) continue
    const kept = row.into === null ? [row.from] : [row.from, row.into]
    await tx.query(
      `insert into hermod.approval
       select * from jsonb_populate_recordset(null::hermod.approval, $2::jsonb)
        where person_id in ($1, $3) on conflict do nothing`,
      [from, JSON.stringify(kept), into],
    )
  }
}
