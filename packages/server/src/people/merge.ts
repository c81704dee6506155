/**
 * Merges two people. One transaction moves every live reference and keeps a pre-image of each,
 * so that it can be undone. History keeps its ids; merges are followed when it is read.
 */
import type { Actor } from '../actor.ts'
import type { Asked, Platform, Tx } from '../platform.ts'
import { notFound, Problem } from '../problems.ts'
import { assertRecent } from '../recent-sign-in.ts'
import { findPerson, type Person } from './queries.ts'
import { audit, record } from './record.ts'
import { refreshDocuments } from './references/refresh.ts'
import { type Pair, references } from './references.ts'
import { lockLiving, touch } from './write.ts'

export type Counts = Readonly<Record<string, number>>

export interface MergePreview {
  readonly from: Person
  readonly into: Person
  /** Rows that would change, by column. */
  readonly counts: Counts
}

/** What a merge would do; changes nothing. */
export async function previewMerge(db: Asked, pair: Pair): Promise<MergePreview> {
  assertTwo(pair)
  const from = await findPerson(db, pair.from)
  const into = await findPerson(db, pair.into)
  if (from?.id !== pair.from || into?.id !== pair.into) throw notLiving(pair, from, into)
  return { from, into, counts: await countAll(db, pair) }
}

function notLiving({ from, into }: Pair, ...found: readonly (Person | undefined)[]): Problem {
  const at = found[0]?.id === from ? 1 : 0
  const mergedInto = found[at]?.id
  if (mergedInto === undefined) return notFound('person')
  const says = `Person ${at === 0 ? from : into} was merged into person ${mergedInto}.`
  return new Problem('HMD_CONFLICT', says, { facts: { mergedInto } })
}

function assertTwo({ from, into }: Pair): void {
  if (from !== into) return
  throw new Problem('HMD_RULE_BROKEN', 'A person cannot be merged into itself: name another one.')
}

async function countAll(db: Asked, pair: Pair): Promise<Counts> {
  const counts: Record<string, number> = {}
  for (const reference of references) Object.assign(counts, await reference.count(db, pair))
  return counts
}

export interface MergeRequest extends Pair {
  readonly reason: string
}

export interface MergeResult extends Pair {
  readonly mergeId: string
  readonly counts: Counts
}

export async function mergePeople(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { from, into, reason }: MergeRequest,
): Promise<MergeResult> {
  const pair = { from, into }
  assertTwo(pair)
  assertRecent(actor, platform.clock())
  await lockLiving(tx, [from, into])
  const counts = await countAll(tx, pair)
  const before: Record<string, unknown> = {}
  for (const { name, move } of references) before[name] = await move(tx, pair, actor.personId)
  await tx.query(
    `update hermod.person set merged_into = $2, deleted_at = now(), updated_at = now(),
            version = version + 1 where id = $1`,
    [from, into],
  )
  await touch(tx, into)
  const mergeId = await keepMerge(tx, actor, { from, into, reason }, before)
  const changes = { mergeId, from, into, counts }
  await audit(tx, actor, { personId: from, action: 'merged', changes, reason })
  await record(platform, tx, actor, { personId: into, action: 'merged', changes, reason })
  await refreshDocuments(platform, tx, actor, [into])
  return { mergeId, from, into, counts }
}

async function keepMerge(
  tx: Tx,
  { personId }: Actor,
  { from, into, reason }: MergeRequest,
  before: object,
): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `insert into hermod.person_merge (from_person, into_person, before, reason, done_by)
     values ($1, $2, $3, $4, $5) returning id`,
    [from, into, JSON.stringify(before), reason, personId],
  )
  return (rows[0] as { id: string }).id
}

/**
 * Puts back what was not changed since the merge. The last merge of a person must be undone first: only then
 * does every pre-image match.
 */
export async function undoMerge(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { mergeId, reason }: { mergeId: string; reason: string },
): Promise<Omit<MergeResult, 'counts'>> {
  assertRecent(actor, platform.clock())
  const { from, into, before } = await lockMerge(tx, mergeId)
  const pair = { from, into }
  await lockBoth(tx, mergeId, pair)
  await tx.query(
    `update hermod.person set merged_into = null, deleted_at = null, updated_at = now(),
            version = version + 1 where id = $1`,
    [from],
  )
  for (const { name, restore } of references) {
    // A table that came later than the merge has nothing to give back.
    if (name in before) await restore(tx, pair, before[name])
  }
  await touch(tx, into)
  await tx.query('update hermod.person_merge set undone_at = now(), undone_by = $2 where id = $1', [
    mergeId,
    actor.personId,
  ])
  const changes = { mergeId, from, into }
  await audit(tx, actor, { personId: from, action: 'unmerged', changes, reason })
  await record(platform, tx, actor, { personId: into, action: 'unmerged', changes, reason })
  await refreshDocuments(platform, tx, actor, [from, into])
  return { mergeId, from, into }
}

async function lockMerge(tx: Tx, mergeId: string) {
  const { rows } = await tx.query(
    `select from_person as "from", into_person as "into", before, undone_at is not null as undone
       from hermod.person_merge where id = $1 for update`,
    [mergeId],
  )
  const [merge] = rows
  if (merge === undefined) throw notFound('merge')
  if (merge.undone) throw new Problem('HMD_CONFLICT', 'This merge was undone already.')
  return merge as Pair & { before: Record<string, unknown> }
}

async function lockBoth(tx: Tx, mergeId: string, { from, into }: Pair): Promise<void> {
  await tx.query('select from hermod.person where id in ($1, $2) order by id for update', [...[from, into]])
  const { rows } = await tx.query<{ id: string }>(
    `select id from hermod.person_merge where id > $1 and undone_at is null
        and (into_person = $2 or from_person = $2) order by id desc`,
    [mergeId, into],
  )
  if (rows.length === 0) return
  const later = rows.map(({ id }) => id)
  throw new Problem(
    'HMD_CONFLICT',
    `Person ${into} was merged again since: undo ${later.length === 1 ? 'merge' : 'merges'} ${later.join(', ')} first.`,
    { facts: { undoFirst: later } },
  )
}
