// Two people become one and two again: every reference moves and comes back, what happened in
// between stays where it belongs, and no column of the database is forgotten.

import { describe, expect, it } from 'vitest'
import { setPrimary } from '../../src/people/commands.ts'
import { mergePeople, previewMerge } from '../../src/people/merge.ts'
import { keptColumns, movedColumns, references } from '../../src/people/references.ts'
import type { ResolvedPerson } from '../../src/people/resolve.ts'
import { transaction } from '../../src/platform.ts'
import { admin, usePeople } from './use-people.ts'

const people = usePeople()

let made = 0
/** Somebody nobody else uses. */
function somebody(): Promise<ResolvedPerson> {
  const name = `p${++made}`
  return people.signIn('google', name, `${name}@example.org`)
}

interface Given {
  readonly by: ResolvedPerson
  readonly owners?: readonly ResolvedPerson[]
  readonly approvers?: readonly ResolvedPerson[]
}

/** A published document, written as the room documents would. */
async function document({ by, owners = [by], approvers = [] }: Given): Promise<string> {
  const [row] = await people.db.query<{ id: string }>(
    `insert into hermod.document (status, doc_type, product, doc_number, title, workspace_provider,
       provider_file_id, created_by, last_modified_by_person_id, published_at)
     values ('In-Review', 'RFC', 'Labs', $2, 'Ranking', 'local', gen_random_uuid(), $1, $1, now()) returning id`,
    [by.personId, ++made],
  )
  const id = row?.id ?? ''
  const named = { owner: owners, approver: approvers }
  for (const [relation, list] of Object.entries(named)) {
    for (const [place, { personId }] of list.entries()) {
      await people.db.query('insert into hermod.document_person values ($1, $2, $3, $4)', [
        ...[id, personId, relation, place],
      ])
    }
  }
  return id
}

async function decide(id: string, { personId }: ResolvedPerson, decision: string, at: string) {
  await people.db.query(
    `insert into hermod.approval (document_id, person_id, decision, decided_at) values ($1, $2, $3, $4)
     on conflict (document_id, person_id) do update set decision = $3, decided_at = $4`,
    [id, personId, decision, at],
  )
}

/** Everything that may refer to a person, as it is now; versions and times of change aside. */
async function picture(): Promise<unknown> {
  const all = await Promise.all(
    [
      'select id, person_id, is_primary, deleted_at from hermod.person_identity order by id',
      'select id, merged_into, deleted_at, role, display_name from hermod.person order by id',
      'select id, created_by, last_modified_by_person_id, modified_at from hermod.document order by id',
      'select * from hermod.document_person order by document_id, relation, place, person_id',
      'select * from hermod.approval order by document_id, person_id',
    ].map((sql) => people.db.query(sql)),
  )
  return all
}

describe('every column that refers to a person', () => {
  it('is moved, or listed with the reason why it is not', async () => {
    const rows = await people.db.query<{ column: string }>(
      `select c.relname || '.' || a.attname as column
         from pg_attribute a join pg_class c on c.oid = a.attrelid
         join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'hermod' and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
          and (exists (select from pg_constraint f where f.contype = 'f' and f.conrelid = c.oid
                 and f.confrelid = 'hermod.person'::regclass and a.attnum = any (f.conkey))
            or (format_type(a.atttypid, null) in ('bigint', 'bigint[]')
              and a.attname ~ '(person|_by$|actor|owner|user|visible_to)'))
        order by 1`,
    )
    const handled = [...movedColumns, ...Object.keys(keptColumns)]
    expect(rows.map(({ column }) => column)).toEqual(handled.sort())
    expect(Object.values(keptColumns).every((why) => why.length > 10)).toBe(true)
  })

  it('the preview counts every moved column', async () => {
    const [from, into] = [await somebody(), await somebody()]
    const { counts } = await previewMerge(people.platform.pool, {
      from: from.personId,
      into: into.personId,
    })
    expect(Object.keys(counts)).toEqual(expect.arrayContaining([...movedColumns]))
    expect(references.map(({ name }) => name)).toEqual(['identities', 'documents', 'tokens'])
  })
})

describe('a merge', () => {
  it('moves everything live, leaves history, and is undone to the same picture', async () => {
    const [from, into, third] = [await somebody(), await somebody(), await somebody()]
    const mine = await document({ by: from, owners: [from, third] })
    const both = await document({ by: into, owners: [into, from], approvers: [third] })
    const first = await document({ by: third, owners: [from, into] })
    const decided = await document({ by: third, approvers: [from, into] })
    await decide(decided, from, 'changes-requested', '2026-01-02T00:00:00.123456Z')
    await decide(decided, into, 'approved', '2026-01-01T00:00:00Z')
    await decide(both, from, 'approved', '2026-01-01T00:00:00Z')
    await people.db.query(
      `insert into hermod.document_modification_log (document_id, provider_file_id, version, modification_type,
         command, modified_by_person_id, modified_by_identity, workspace_provider, api_endpoint)
       values ($1, 'x', 1, 'created', 'createDocument', $2, 'email:google:x@y', 'local', 'test')`,
      [mine, from.personId],
    )
    const before = await picture()
    const pair = { from: from.personId, into: into.personId }
    const { counts } = await previewMerge(people.platform.pool, pair)
    expect(counts).toMatchObject({
      'person_identity.person_id': 2,
      'document.created_by': 1,
      'document_person.person_id': 4,
      'approval.person_id': 2,
    })
    expect(await picture()).toEqual(before)

    const mergeId = await people.merge(from, into)
    expect(await people.identities(from)).toEqual([])
    expect(await people.identities(into)).toHaveLength(4)
    const left = await people.db.query(
      `select count(*)::int as n from hermod.document d where created_by = $1 or last_modified_by_person_id = $1
          or exists (select from hermod.document_person where person_id = $1)
          or exists (select from hermod.approval where person_id = $1)`,
      [from.personId],
    )
    expect(left).toEqual([{ n: 0 }])
    const owners = (id: string) =>
      people.db.query(
        `select person_id, place from hermod.document_person
          where document_id = $1 and relation = 'owner' order by place`,
        [id],
      )
    expect(await owners(both)).toEqual([{ person_id: into.personId, place: 0 }])
    expect(await owners(first)).toEqual([{ person_id: into.personId, place: 0 }])
    // The later of two decisions counts.
    expect(
      await people.db.query('select person_id, decision from hermod.approval where document_id = $1', [decided]),
    ).toEqual([{ person_id: into.personId, decision: 'changes-requested' }])
    expect(
      await people.db.query(
        'select modified_by_person_id as id from hermod.document_modification_log where document_id = $1',
        [mine],
      ),
    ).toEqual([{ id: from.personId }])

    await people.undo(mergeId)
    expect(await picture()).toEqual(before)
    expect((await people.audit(from)).slice(-2)).toEqual(['merged', 'unmerged'])
    expect((await people.audit(into)).slice(-2)).toEqual(['merged', 'unmerged'])
  })

  it('tells it once, and tells every document again, in the same commit', async () => {
    const [from, into] = [await somebody(), await somebody()]
    const id = await document({ by: from })
    const mergeId = await people.merge(from, into)
    const events = await people.db.query(
      `select type, payload ->> 'mergeId' as merge from outbox.event
        where (aggregate_type, aggregate_id) in (('person', $1), ('document', $2)) and type <> 'person.created'
        order by id`,
      [into.personId, id],
    )
    expect(events).toEqual([
      { type: 'person.merged', merge: mergeId },
      { type: 'document.refreshed', merge: null },
    ])
  })

  it('revokes the API tokens of both, and undoing does not give them back', async () => {
    const [from, into] = [await somebody(), await somebody()]
    for (const { personId } of [from, into]) {
      await people.db.query(
        `insert into hermod.api_token (person_id, name, prefix, hash, scopes, expires_at)
         values ($1, 'x', 'x', sha256(random()::text::bytea), '{document:read}', now() + interval '1 day')`,
        [personId],
      )
    }
    const live = () =>
      people.db.query(
        'select count(*)::int as n from hermod.api_token where person_id in ($1, $2) and revoked_at is null',
        [from.personId, into.personId],
      )
    const mergeId = await people.merge(from, into)
    expect(await live()).toEqual([{ n: 0 }])
    await people.undo(mergeId)
    expect(await live()).toEqual([{ n: 0 }])
  })

  it('what happened in between stays with the survivor', async () => {
    const [from, into, third] = [await somebody(), await somebody(), await somebody()]
    const edited = await document({ by: from })
    const untouched = await document({ by: from })
    const left = await document({ by: third, owners: [third, from] })
    const decided = await document({ by: third, approvers: [from] })
    await decide(decided, from, 'changes-requested', '2026-01-01T00:00:00Z')
    const mergeId = await people.merge(from, into)
    await people.db.query('update hermod.document set modified_at = clock_timestamp() where id = $1', [edited])
    await people.db.query('delete from hermod.document_person where document_id = $1 and person_id = $2', [
      left,
      into.personId,
    ])
    await decide(decided, into, 'approved', '2026-02-01T00:00:00Z')
    await people.link(into, { type: 'email', provider: 'okta', value: `later${made}@example.org` })
    const since = await document({ by: into })
    await people.undo(mergeId)
    const modifiers = await people.db.query(
      'select id, created_by, last_modified_by_person_id as modified from hermod.document where id = any ($1::uuid[])',
      [[edited, untouched, since]],
    )
    expect(modifiers).toEqual(
      expect.arrayContaining([
        { id: edited, created_by: from.personId, modified: into.personId },
        { id: untouched, created_by: from.personId, modified: from.personId },
        { id: since, created_by: into.personId, modified: into.personId },
      ]),
    )
    const owners = await people.db.query('select person_id from hermod.document_person where document_id = $1', [left])
    expect(owners).toEqual([{ person_id: third.personId }])
    const approvals = await people.db.query('select person_id, decision from hermod.approval where document_id = $1', [
      decided,
    ])
    expect(approvals).toEqual([{ person_id: into.personId, decision: 'approved' }])
    expect(await people.identities(into)).toHaveLength(3)
    expect(await people.identities(from)).toHaveLength(2)
  })

  it('an address that changed in between goes back with the log-in that carries it', async () => {
    const [from, into] = [await somebody(), await somebody()]
    const subject = from.identity.replace(/^email:google:(.*)@.*$/, '$1')
    const mergeId = await people.merge(from, into)
    await people.signIn('google', subject, `${subject}.new@example.org`)
    await people.undo(mergeId)
    expect(await people.identities(from)).toEqual([
      `oauth_sub google ${subject} verified`,
      `email google ${subject}.new@example.org verified primary`,
    ])
  })

  it('each keeps exactly one primary, also when it was changed in between', async () => {
    const [from, into] = [await somebody(), await somebody()]
    const mergeId = await people.merge(from, into)
    // The one that will go back becomes the primary of the survivor.
    const [moved] = await people.db.query<{ id: string }>(
      `select id from hermod.person_identity where person_id = $1 and value = $2`,
      [into.personId, from.identity.replace('email:google:', '')],
    )
    await transaction(people.platform, (tx) =>
      setPrimary(people.platform, tx, admin(), {
        personId: into.personId,
        identityId: moved?.id ?? '',
      }),
    )
    await people.undo(mergeId)
    const primaries = await people.db.query(
      `select person_id, count(*) filter (where is_primary)::int as n from hermod.person_identity
        where person_id in ($1, $2) group by 1`,
      [from.personId, into.personId],
    )
    expect(primaries.map(({ n }) => n)).toEqual([1, 1])
  })
})

describe('chains and refusals', () => {
  it('A into B into C: A and B are C, and the last merge is undone first', async () => {
    const [a, b, c] = [await somebody(), await somebody(), await somebody()]
    await document({ by: a, owners: [a, b] })
    await document({ by: c, owners: [b, c, a] })
    const before = await picture()
    const first = await people.merge(a, b)
    const second = await people.merge(b, c)
    const current = await people.db.query('select hermod.current_person($1) as id', [a.personId])
    expect(current).toEqual([{ id: c.personId }])
    await expect(people.undo(first)).rejects.toMatchObject({
      code: 'HMD_CONFLICT',
      facts: { undoFirst: [second] },
    })
    await people.undo(second)
    await people.undo(first)
    expect(await picture()).toEqual(before)
  })

  it('two merges into one person are undone in reverse, also where all three share a document', async () => {
    const [a, b, c] = [await somebody(), await somebody(), await somebody()]
    const id = await document({ by: a, owners: [a, b, c], approvers: [c, a, b] })
    for (const [at, one] of [a, b, c].entries()) {
      await decide(id, one, 'approved', `2026-01-0${at + 1}T00:00:00Z`)
    }
    const before = await picture()
    const first = await people.merge(a, c)
    const second = await people.merge(b, c)
    await expect(people.undo(first)).rejects.toMatchObject({ facts: { undoFirst: [second] } })
    await people.undo(second)
    await people.undo(first)
    expect(await picture()).toEqual(before)
  })

  it('nobody is merged twice, in a circle, into themselves or into nobody', async () => {
    const [a, b] = [await somebody(), await somebody()]
    const mergeId = await people.merge(a, b)
    await expect(people.merge(a, b)).rejects.toMatchObject({
      code: 'HMD_CONFLICT',
      facts: { mergedInto: b.personId },
    })
    await expect(people.merge(b, a)).rejects.toMatchObject({ code: 'HMD_CONFLICT' })
    await expect(people.merge(b, b)).rejects.toMatchObject({ code: 'HMD_RULE_BROKEN' })
    await expect(people.merge(b, { personId: '999999' })).rejects.toMatchObject({
      code: 'HMD_NOT_FOUND',
    })
    await people.undo(mergeId)
    await expect(people.undo(mergeId)).rejects.toMatchObject({ code: 'HMD_CONFLICT' })
    await expect(people.undo('999999')).rejects.toMatchObject({ code: 'HMD_NOT_FOUND' })
  })

  it('an old sign-in, or a machine, is refused', async () => {
    const [a, b] = [await somebody(), await somebody()]
    const { signedInAt: _, ...machine } = admin()
    const old = { ...machine, signedInAt: new Date(Date.now() - 16 * 60_000) }
    for (const actor of [old, machine]) {
      const merging = transaction(people.platform, (tx) =>
        mergePeople(people.platform, tx, actor, {
          from: a.personId,
          into: b.personId,
          reason: 'x',
        }),
      )
      await expect(merging).rejects.toMatchObject({ code: 'HMD_SIGN_IN_AGAIN' })
    }
  })
})
