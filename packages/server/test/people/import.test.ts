// From a legacy table of users: ids, times and owners are kept, bad rows are named and left out,
// and a second run changes nothing.

import { beforeEach, describe, expect, it } from 'vitest'
import { type ImportOptions, importUsers } from '../../src/people/import-users.ts'
import { admin, usePeople } from './use-people.ts'

const people = usePeople()

const run = (options: ImportOptions = {}) => importUsers(people.platform, admin(), options)

beforeEach(async () => {
  await people.db.query(`
    drop table if exists public.users, public.documents;
    truncate hermod.person, hermod.person_identity, hermod.person_audit, hermod.document cascade;
    alter table hermod.person alter column id restart with 1;
    create table public.users (id bigint primary key, email_address text, created_at timestamp, updated_at timestamp);
    create table public.documents (id bigint primary key, owner_id bigint, workspace_provider text,
      last_modified_by_person_id bigint)`)
})

const addUsers = (...rows: readonly (readonly [id: number, email: string | null])[]) =>
  Promise.all(
    rows.map(([id, email]) =>
      people.db.query(`insert into public.users values ($1, $2, '2020-01-02 03:04:05.678901', '2021-02-03 04:05:06')`, [
        id,
        email,
      ]),
    ),
  )

/** Every row of the tables an import may write, and the last number of the sequence. */
const picture = () =>
  people.db.query(
    `select (select jsonb_agg(p order by id) from hermod.person p) as people,
            (select jsonb_agg(i order by id) from hermod.person_identity i) as identities,
            (select jsonb_agg(a order by id) from hermod.person_audit a) as audit,
            (select jsonb_agg(d order by id) from public.documents d) as documents,
            (select count(*) from outbox.event) as events,
            pg_sequence_last_value(pg_get_serial_sequence('hermod.person', 'id')) as last`,
  )

describe('importing users', () => {
  it('keeps ids and times, one primary verified google address each, and moves the sequence', async () => {
    await addUsers([7, 'Ada@example.org'], [500, 'bob@example.org'])
    const progress: number[] = []
    const report = await run({ onProgress: ({ done }) => progress.push(done) })
    expect(report).toMatchObject({ rows: 2, imported: 2, unchanged: 0, refused: 0, problems: [] })
    expect(progress).toEqual([0, 2])
    const rows = await people.db.query(
      `select p.id, p.display_name, p.role, p.created_at::timestamp::text as created, p.updated_at::timestamp::text as updated,
              i.type, i.provider, i.value, i.is_primary, i.verified_at is not null as verified
         from hermod.person p join hermod.person_identity i on i.person_id = p.id order by p.id limit 1`,
    )
    expect(rows).toEqual([
      {
        id: '7',
        display_name: 'Ada@example.org',
        role: 'editor',
        created: '2020-01-02 03:04:05.678901',
        updated: '2021-02-03 04:05:06',
        type: 'email',
        provider: 'google',
        value: 'Ada@example.org',
        is_primary: true,
        verified: true,
      },
    ])
    const next = await people.signIn('google', 'new', 'new@example.org')
    expect(next.personId).toBe('501')
    // Their first log-in finds them.
    expect((await people.signIn('google', 'ada', 'ada@example.org')).personId).toBe('7')
    expect(await people.identities({ personId: '7' })).toEqual([
      'email google Ada@example.org verified primary',
      'oauth_sub google ada verified',
    ])
  })

  it('a second run changes nothing at all, also after log-ins, renames and merges', async () => {
    await addUsers([1, 'a@example.org'], [2, 'b@example.org'], [3, 'c@example.org'])
    await people.db.query(`insert into public.documents values (1, 1, null, null), (2, 2, '', 3)`)
    await run()
    await people.signIn('google', 'a', 'a@example.org')
    await people.signIn('google', 'a', 'a.new@example.org')
    await people.merge({ personId: '2' }, { personId: '3' })
    const before = await picture()
    const report = await run()
    expect(report).toMatchObject({
      rows: 3,
      imported: 0,
      unchanged: 3,
      refused: 0,
      documents: { modifiersSet: 0, providersSet: 0, ownModifiersSet: 0 },
    })
    expect(await picture()).toEqual(before)
  })

  it('names every bad row and imports the others', async () => {
    const known = await people.signIn('google', 'known', 'known@example.org')
    await addUsers(
      ...([
        [Number(known.personId), 'else@example.org'],
        [11, null],
        [12, ' '],
        [13, 'no address'],
        [14, 'twin@example.org'],
        [15, 'TWIN@example.org'],
        [16, 'KNOWN@example.org'],
        [17, 'fine@example.org'],
        [-4, 'minus@example.org'],
      ] as const),
    )
    const dry = await run({ dryRun: true })
    const report = await run()
    expect(report).toEqual({ ...dry, dryRun: false })
    expect(report).toMatchObject({ rows: 9, imported: 2, refused: 7 })
    expect(Object.fromEntries(report.problems.map(({ row, says }) => [row, says]))).toEqual({
      '-4': 'the id must be a whole number from 1 to 9007199254740992',
      [known.personId]: 'the id already belongs to another person',
      '11': 'the address is empty',
      '12': 'the address is empty',
      '13': 'the address is not an e-mail address',
      '15': 'the address already belongs to person 14',
      '16': `the address already belongs to person ${known.personId}`,
    })
    const orphans = await people.db.query(
      `select p.id from hermod.person p where not exists
        (select from hermod.person_identity i where i.person_id = p.id and i.is_primary)`,
    )
    expect(orphans).toEqual([])
  })

  it('a dry run counts and writes nothing', async () => {
    await addUsers([1, 'a@example.org'], [2, 'b@example.org'], [3, null])
    await people.db.query(
      `insert into public.documents values (1, 1, null, null), (2, 2, 'local', null), (3, 3, '', null)`,
    )
    const before = await picture()
    const dry = await run({ dryRun: true })
    expect(await picture()).toEqual(before)
    expect(dry).toMatchObject({
      imported: 2,
      refused: 1,
      documents: { modifiersSet: 2, providersSet: 2 },
    })
    expect(await run()).toEqual({ ...dry, dryRun: false })
  })

  it('2,500 rows in batches, twins across batches, two imports at once', async () => {
    await people.db.query(
      `insert into public.users select n, 'u' || n || '@example.org', now(), now() from generate_series(1, 2500) n;
       update public.users set email_address = 'U1@example.org' where id = 2400`,
    )
    const progress: string[] = []
    const [one, two] = await Promise.all([
      run({ onProgress: ({ done, total }) => progress.push(`${done}/${total}`) }),
      run(),
    ])
    expect(progress).toEqual(['0/2500', '1000/2500', '2000/2500', '2500/2500'])
    expect(one.imported + two.imported).toBe(2499)
    expect(one.problems).toEqual([
      { row: '2400', value: 'U1@example.org', says: 'the address already belongs to person 1' },
    ])
    const counts = await people.db.query(
      `select (select count(*)::int from hermod.person) as people,
              (select count(*)::int from hermod.person_identity where is_primary) as primaries,
              (select count(*)::int from outbox.event where type = 'person.created'
                and (payload ->> 'imported')::boolean and aggregate_id::int <= 2500
                and headers ->> 'endpoint' = 'test' and payload ->> 'displayName' like 'u%') as events`,
    )
    expect(counts).toEqual([{ people: 2499, primaries: 2499, events: 2499 }])
  })
})

describe('documents of the imported', () => {
  it('are given their last modifier and their workspace provider, where there is none', async () => {
    await addUsers([1, 'a@example.org'], [2, null])
    await people.db.query(
      `insert into public.documents values (1, 1, 'local', null), (2, 2, '', null), (3, 9, null, null), (4, 1, 'google', 77)`,
    )
    expect((await run()).documents).toEqual({
      modifiersSet: 1,
      providersSet: 2,
      ownModifiersSet: 0,
      skipped: [],
    })
    expect(await people.db.query('select * from public.documents order by id')).toEqual([
      { id: '1', owner_id: '1', workspace_provider: 'local', last_modified_by_person_id: '1' },
      { id: '2', owner_id: '2', workspace_provider: 'google', last_modified_by_person_id: null },
      { id: '3', owner_id: '9', workspace_provider: 'google', last_modified_by_person_id: null },
      { id: '4', owner_id: '1', workspace_provider: 'google', last_modified_by_person_id: '77' },
    ])
  })

  it('our own take their first owner, and are told again', async () => {
    await addUsers([1, 'a@example.org'])
    const { personId } = await people.signIn('google', 'o', 'o@example.org')
    const [row] = await people.db.query<{ id: string }>(
      `insert into hermod.document (doc_type, product, title, workspace_provider, provider_file_id, created_by)
       values ('RFC', 'Labs', 'x', 'local', gen_random_uuid(), $1) returning id`,
      [personId],
    )
    await people.db.query(`insert into hermod.document_person values ($1, $2, 'owner', 0)`, [row?.id, personId])
    expect((await run()).documents.ownModifiersSet).toBe(1)
    const events = await people.db.query(
      `select type from outbox.event where aggregate_type = 'document' and aggregate_id = $1`,
      [row?.id],
    )
    expect(events).toEqual([{ type: 'draft.refreshed' }])
    expect((await run()).documents.ownModifiersSet).toBe(0)
  })

  it('tables that lack something are named, and nothing is changed in them', async () => {
    await people.db.query('drop table public.documents')
    expect((await run()).documents.skipped).toEqual(['there is no table documents beside the users'])
    await people.db.query('create table public.documents (id bigint, title text)')
    expect((await run()).documents.skipped).toEqual([
      'documents has no column owner_id, last_modified_by_person_id',
      'documents has no column workspace_provider',
    ])
  })

  it.each([
    ['nothing', /is not there/],
    ['public.documents', /has no column email_address/],
    ['users; drop table users', /must be a table/],
    ['"users"', /must be a table/],
  ])('users from %s are refused', async (table, says) => {
    await expect(run({ table })).rejects.toMatchObject({ code: 'HMD_RULE_BROKEN', message: says })
  })

  it('ids that are no numbers are refused as a whole', async () => {
    await people.db.query('create table public.guids (id uuid, email_address text)')
    await expect(run({ table: 'guids' })).rejects.toThrow(/ids of type uuid/)
  })
})
