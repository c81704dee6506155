// Bulk import over HTTP: all or nothing, best effort, repeats, dry runs, in the background, and
// everything that was imported is found.

import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { many, newKey, row, useImports } from './use-imports.ts'

const { server, send, counts } = useImports()

describe('all or nothing', () => {
  it('imports 500 documents: numbered without gaps, in the audit trail, all searchable', async () => {
    const before = await counts()
    const answer = await send({
      rows: many(500, (n) => ({
        product: n % 2 ? 'Odd' : 'Even',
        content: `about zebra${n}`,
        owners: ['ADA@example.org'],
        tags: ['imported'],
        customFields: { n },
        createdAt: '2020-01-02T03:04:05Z',
        ...(n % 10 === 0 && { status: 'WIP', contributors: ['olga@example.org'] }),
      })),
    })
    expect(answer.statusCode, answer.body).toBe(201)
    expect(answer.json()).toMatchObject({
      state: 'succeeded',
      mode: 'all',
      errors: [],
      rows: { total: 500, done: 500, imported: 500, failed: 0 },
    })
    const after = await counts()
    expect([after.documents, after.log, after.events].map((n) => n - 0)).toEqual([
      ...[before.documents + 500, before.log + 500, before.events + 500],
    ])
    const numbers = await server.db.query(
      `select product, min(doc_number), max(doc_number), count(doc_number)::int from hermod.document
        where product in ('Odd', 'Even') group by 1 order by 1`,
    )
    expect(numbers).toEqual([
      { product: 'Even', min: 1, max: 200, count: 200 },
      { product: 'Odd', min: 1, max: 250, count: 250 },
    ])
    const [first] = await server.db.query(
      `select d.created_at, p.display_name as owner, l.modification_type, l.command, l.api_endpoint, e.headers ->> 'log' = l.id::text as linked
         from hermod.document d join hermod.document_person o on o.document_id = d.id and o.relation = 'owner'
         join hermod.person p on p.id = o.person_id join hermod.document_modification_log l on l.document_id = d.id
         join outbox.event e on e.id = l.event_id where d.content = 'about zebra1'`,
    )
    expect(first).toEqual({
      created_at: new Date('2020-01-02T03:04:05Z'),
      owner: 'ada',
      modification_type: 'created',
      command: 'createDocument',
      linked: true,
      api_endpoint: 'POST /api/v2/imports',
    })
    const worker = await server.work()
    await server.caughtUp()
    await worker.stop()
    const found = async (index: string, as: string) =>
      (await server.ask('GET', `/api/v2/search?index=${index}&limit=1`, { as })).json().total
    expect(await server.platform.search.count('documents')).toBe(450)
    expect(await found('drafts', 'ada')).toBe(50)
    const one = await server.ask('GET', '/api/v2/search?q=zebra499&index=documents', { as: 'bert' })
    expect(one.json().hits).toHaveLength(1)
  })

  it('one wrong row in the middle: nothing is written, and every wrong row is named', async () => {
    const before = await counts()
    const rows = many(700, (n) => {
      if (n === 300) return { owners: ['nobody@example.org'] }
      if (n === 650) return { workspaceProvider: 'google' }
      return {}
    })
    const answer = await send({ rows })
    expect(answer.statusCode).toBe(422)
    expect(answer.json()).toMatchObject({
      code: 'HMD_IMPORT_REFUSED',
      rows: { total: 700, failed: 2 },
      errors: [
        {
          pointer: 'row 300 /owners/0',
          detail: 'names nobody with the verified address nobody@example.org',
        },
        {
          pointer: 'row 650 /providerFileId',
          detail: 'is missing: a google document has a file there',
        },
      ],
    })
    expect(await counts()).toEqual(before)
    const kept = await server.ask('GET', `/api/v2/imports/${answer.json().import}`, {
      as: 'olga',
      role: 'operator',
    })
    expect(kept.json()).toMatchObject({ state: 'failed', rows: { imported: 0, failed: 2 } })
  })

  it('a row that breaks a rule about people is found among hundreds', async () => {
    const before = await counts()
    const rows = many(300, (n) => (n === 137 ? { owners: ['ada@example.org'], approvers: ['ada@example.org'] } : {}))
    const answer = await send({ rows })
    expect(answer.json().errors).toEqual([
      {
        pointer: 'row 137 /approvers/0',
        detail: 'is an owner; nobody decides about their own document',
      },
    ])
    expect(await counts()).toEqual(before)
  })

  it('the same file twice in one import, or registered before, is said', async () => {
    const google = (id: string) => ({ workspaceProvider: 'google', providerFileId: id })
    expect((await send({ rows: [row(1, google('g-1'))] })).statusCode).toBe(201)
    const before = await counts()
    const answer = await send({
      rows: [row(1, google('g-2')), row(2, google('g-1')), row(3, google('g-2'))],
    })
    expect(answer.statusCode).toBe(422)
    expect(answer.json().errors).toEqual([
      {
        pointer: 'row 2 /providerFileId',
        detail: expect.stringMatching(/^belongs to document [0-9a-f-]{36} already$/),
      },
      { pointer: 'row 3 /providerFileId', detail: 'belongs to another row of this import already' },
    ])
    expect(await counts()).toEqual(before)
  })
})

describe('best effort', () => {
  it('3 wrong rows of 1,000: 997 documents, 3 reports', async () => {
    const before = await counts()
    const lines = many(1_000, (n) => (n === 900 ? { approvers: ['x@example.org'] } : {})).map((one) =>
      JSON.stringify(one),
    )
    lines[9] = '{"title": "cut'
    lines[499] = JSON.stringify({ ...row(500), titel: 'wrong field' })
    const answer = await send({ text: lines.join('\n'), query: '?mode=best-effort' })
    expect(answer.statusCode).toBe(201)
    expect(answer.json()).toMatchObject({
      state: 'succeeded',
      rows: { total: 1_000, imported: 997, failed: 3 },
      errors: [
        { row: 10, line: 10, pointer: '/', detail: 'is not valid JSON' },
        { row: 500, line: 500, pointer: '/titel', detail: 'is not a known field' },
        { row: 900, pointer: '/approvers/0', detail: expect.stringContaining('names nobody') },
      ],
    })
    const after = await counts()
    expect(after.documents - before.documents).toBe(997)
    expect(after.numbers - before.numbers).toBe(997)
  })

  it('what only the database refuses is isolated by halving', async () => {
    await server.db.query(
      `create function refuse() returns trigger language plpgsql as $$ begin
         raise exception 'no such title' using errcode = '22023'; end $$;
       create trigger refuse before insert on hermod.document for each row when (new.title ~ '^Refused') execute function refuse()`,
    )
    try {
      const rows = many(520, (n) => ([33, 34, 510].includes(n) ? { title: `Refused ${n}` } : {}))
      const some = await send({ rows, query: '?mode=best-effort' })
      expect(some.json()).toMatchObject({ rows: { imported: 517, failed: 3 } })
      expect(some.json().errors.map((error: { row: number }) => error.row)).toEqual([33, 34, 510])
      const before = await counts()
      const none = await send({ rows })
      expect(none.json()).toMatchObject({ code: 'HMD_IMPORT_REFUSED', rows: { failed: 3 } })
      expect(await counts()).toEqual(before)
    } finally {
      await server.db.query('drop function refuse cascade')
    }
  })

  it('goes on where a dead process stopped, when it is sent again', async () => {
    const rows = many(700, () => ({ product: 'Resumed' }))
    const key = newKey()
    await server.db.query(
      `create function die() returns trigger language plpgsql as $$ begin
         raise exception 'gone' using errcode = '57P01'; end $$;
       create trigger die before insert on hermod.document for each row when (new.title = 'Document 600') execute function die()`,
    )
    const died = await send({ rows, key, query: '?mode=best-effort' })
    expect(died.statusCode).toBe(503)
    await server.db.query('drop function die cascade')
    expect((await send({ rows, key, query: '?mode=best-effort' })).json().code).toBe('HMD_KEY_IN_USE')
    await server.db.query(`update hermod.import set alive_at = alive_at - interval '31 seconds' where key = $1`, [key])
    const again = await send({ rows, key, query: '?mode=best-effort' })
    expect(again.json()).toMatchObject({ state: 'succeeded', rows: { imported: 700, failed: 0 } })
    const [found] = await server.db.query(
      `select count(*)::int as count, count(distinct title)::int as titles, max(doc_number) from hermod.document where product = 'Resumed'`,
    )
    expect(found).toEqual({ count: 700, titles: 700, max: 700 })
  })
})

describe('repeats', () => {
  it('the same key and file: the first answer, and nothing twice', async () => {
    const sent = { rows: many(3), key: newKey() }
    const first = await send(sent)
    const before = await counts()
    const second = await send(sent)
    expect(second.headers['idempotent-replayed']).toBe('true')
    expect(second.json()).toEqual(first.json())
    expect(await counts()).toEqual(before)
  })

  it('the same key and another file or mode is refused', async () => {
    const key = newKey()
    await send({ rows: many(2), key })
    const before = await counts()
    expect((await send({ rows: many(3), key })).json().code).toBe('HMD_KEY_REUSED')
    expect((await send({ rows: many(2), key, query: '?mode=best-effort' })).json().code).toBe('HMD_KEY_REUSED')
    expect(await counts()).toEqual(before)
  })

  it('what failed may be sent again with its key', async () => {
    const key = newKey()
    expect((await send({ rows: [row(1, { owners: ['carl@example.org'] })], key })).statusCode).toBe(422)
    await server.ask('GET', '/api/v2/documents', { as: 'carl' })
    expect((await send({ rows: [row(1, { owners: ['carl@example.org'] })], key })).statusCode).toBe(201)
  })

  it('four at once with one key import once', async () => {
    const sent = { rows: many(40, () => ({ product: 'Once' })), key: newKey() }
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(sent)))
    expect(answers.filter(({ statusCode }) => statusCode === 201).length).toBeGreaterThan(0)
    for (const { statusCode } of answers) expect([201, 409]).toContain(statusCode)
    const [found] = await server.db.query(`select count(*)::int from hermod.document where product = 'Once'`)
    expect(found).toEqual({ count: 40 })
  })
})

describe('a dry run', () => {
  it('says the same as the real one and writes nothing', async () => {
    const before = await counts()
    const google = { workspaceProvider: 'google', providerFileId: 'dry' }
    const rows = [row(1, google), row(2, google), row(3, { owners: ['nobody@example.org'] }), row(4)]
    const answer = await send({ rows, query: '?dryRun=true&mode=best-effort' })
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({
      dryRun: true,
      rows: { total: 4, imported: 2, failed: 2 },
      errors: [
        {
          row: 2,
          pointer: '/providerFileId',
          detail: 'belongs to another row of this import already',
        },
        { row: 3, pointer: '/owners/0' },
      ],
    })
    expect(await counts()).toEqual(before)
    expect(await server.db.query(`select from hermod.import where rows_total = 4`)).toEqual([])
  })
})

describe('in the background', () => {
  it('is answered at once and can be watched until it ended', async () => {
    const sent = { rows: many(50), headers: { prefer: 'respond-async' } }
    const answer = await send(sent)
    expect(answer.statusCode).toBe(202)
    const done = await eventually(async () => {
      const now = await server.ask('GET', String(answer.headers.location), {
        as: 'olga',
        role: 'operator',
      })
      return now.json().state === 'succeeded' && now.json()
    })
    expect(done).toMatchObject({ rows: { total: 50, done: 50, imported: 50 } })
  })

  it('is nobody else’s to see', async () => {
    const { headers } = await send({ rows: many(1) })
    const get = (as: string, role: 'operator' | 'admin' | 'editor') =>
      server.ask('GET', String(headers.location), { as, role })
    expect((await get('otto', 'operator')).statusCode).toBe(404)
    expect((await get('ada', 'editor')).statusCode).toBe(403)
    expect((await get('root', 'admin')).statusCode).toBe(200)
  })
})
