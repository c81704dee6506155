// Bulk import over HTTP: all or nothing, best effort, repeats, cut connections, and everything that
// was imported is found.

import { readdir, readlink } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

interface Sent {
  readonly rows?: readonly object[]
  readonly text?: string | Buffer
  readonly type?: string
  readonly key?: string
  readonly query?: string
  readonly headers?: Record<string, string>
  readonly as?: string
}

let keys = 0
const newKey = () => `key-${++keys}`

function send({ rows = [], text, type = 'application/x-ndjson', ...more }: Sent) {
  const { key = newKey(), query = '', headers = {}, as = 'olga' } = more
  const payload = text ?? rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  return server.ask('POST', `/api/v2/imports${query}`, {
    ...{ as, role: 'operator', body: payload },
    headers: { 'content-type': type, 'idempotency-key': key, ...headers },
  })
}

const row = (number: number, more: object = {}) => ({
  ...{ title: `Document ${number}`, docType: 'RFC', product: 'Labs', ...more },
})
const many = (count: number, more: (number: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, index) => row(index + 1, more(index + 1)))

async function counts() {
  const [found] = await server.db.query(
    `select (select count(*) from hermod.document)::int as documents, (select count(*) from hermod.document_modification_log)::int as log,
       (select count(*) from outbox.event where type ~ '^(document|draft)')::int as events,
       (select coalesce(sum(last), 0) from hermod.product_number)::int as numbers`,
  )
  return found as { documents: number; log: number; events: number; numbers: number }
}

beforeAll(async () => {
  // Signing in makes the people.
  for (const as of ['olga', 'ada', 'bert']) await server.ask('GET', '/api/v2/documents', { as })
})

describe('all or nothing', () => {
  it('imports 500 documents: numbered without gaps, in the audit trail, all searchable', async () => {
    const before = await counts()
    const answer = await send({
      rows: many(500, (n) => ({
        ...{
          product: n % 2 ? 'Odd' : 'Even',
          content: `about zebra${n}`,
          owners: ['ADA@example.org'],
        },
        ...{ tags: ['imported'], customFields: { n }, createdAt: '2020-01-02T03:04:05Z' },
        ...(n % 10 === 0 && { status: 'WIP', contributors: ['olga@example.org'] }),
      })),
    })
    expect(answer.statusCode, answer.body).toBe(201)
    expect(answer.json()).toMatchObject({
      ...{ state: 'succeeded', mode: 'all', errors: [] },
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
      ...{ created_at: new Date('2020-01-02T03:04:05Z'), owner: 'ada' },
      ...{ modification_type: 'created', command: 'createDocument', linked: true },
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
      ...{ code: 'HMD_IMPORT_REFUSED', rows: { total: 700, failed: 2 } },
      errors: [
        {
          ...{ pointer: 'row 300 /owners/0' },
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
      ...{ as: 'olga', role: 'operator' },
    })
    expect(kept.json()).toMatchObject({ state: 'failed', rows: { imported: 0, failed: 2 } })
  })

  it('a row that breaks a rule about people is found among hundreds', async () => {
    const before = await counts()
    const rows = many(300, (n) =>
      n === 137 ? { owners: ['ada@example.org'], approvers: ['ada@example.org'] } : {},
    )
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
    const lines = many(1_000, (n) => (n === 900 ? { approvers: ['x@example.org'] } : {})).map(
      (one) => JSON.stringify(one),
    )
    lines[9] = '{"title": "cut'
    lines[499] = JSON.stringify({ ...row(500), titel: 'wrong field' })
    const answer = await send({ text: lines.join('\n'), query: '?mode=best-effort' })
    expect(answer.statusCode).toBe(201)
    expect(answer.json()).toMatchObject({
      ...{ state: 'succeeded', rows: { total: 1_000, imported: 997, failed: 3 } },
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
    expect((await send({ rows, key, query: '?mode=best-effort' })).json().code).toBe(
      'HMD_KEY_IN_USE',
    )
    await server.db.query(
      `update hermod.import set alive_at = alive_at - interval '31 seconds' where key = $1`,
      [key],
    )
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
    expect((await send({ rows: many(2), key, query: '?mode=best-effort' })).json().code).toBe(
      'HMD_KEY_REUSED',
    )
    expect(await counts()).toEqual(before)
  })

  it('what failed may be sent again with its key', async () => {
    const key = newKey()
    expect((await send({ rows: [row(1, { owners: ['carl@example.org'] })], key })).statusCode).toBe(
      422,
    )
    await server.ask('GET', '/api/v2/documents', { as: 'carl' })
    expect((await send({ rows: [row(1, { owners: ['carl@example.org'] })], key })).statusCode).toBe(
      201,
    )
  })

  it('four at once with one key import once', async () => {
    const sent = { rows: many(40, () => ({ product: 'Once' })), key: newKey() }
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(sent)))
    expect(answers.filter(({ statusCode }) => statusCode === 201).length).toBeGreaterThan(0)
    for (const { statusCode } of answers) expect([201, 409]).toContain(statusCode)
    const [found] = await server.db.query(
      `select count(*)::int from hermod.document where product = 'Once'`,
    )
    expect(found).toEqual({ count: 40 })
  })
})

describe('CSV', () => {
  const csv = (text: string | Buffer, query = '') =>
    send({ text, type: 'text/csv; charset=utf-8', query })

  it('quotes, commas, line breaks, BOM, lists, own fields, other spellings of columns', async () => {
    const text = [
      '\ufeffTitle,doc_type,Product,content,tags,owners,customFields.team,workspace provider,providerFileId',
      '"One, ""quoted""",RFC,Csv,"line 1\r\nline 2",a; b ;,ada@example.org;bert@example.org,Search,s3,csv-1',
      'Ünïcödé,RFC,Csv,,,,,,',
      '',
    ].join('\r\n')
    const answer = await csv(text)
    expect(answer.statusCode, answer.body).toBe(201)
    const rows = await server.db.query(
      `select title, content, tags, custom_fields, workspace_provider, (select count(*)::int from hermod.document_person p
         where p.document_id = d.id and relation = 'owner') as owners from hermod.document d where product = 'Csv' order by doc_number`,
    )
    expect(rows).toEqual([
      {
        ...{ title: 'One, "quoted"', content: 'line 1\r\nline 2', tags: ['a', 'b'], owners: 2 },
        ...{ custom_fields: { team: 'Search' }, workspace_provider: 's3' },
      },
      {
        ...{ title: 'Ünïcödé', content: '', tags: [], owners: 1 },
        ...{ custom_fields: {}, workspace_provider: 'local' },
      },
    ])
  })

  const refused: [name: string, text: string | Buffer, status: number, says: RegExp][] = [
    ['an unknown column', 'title,docType,produkt\na,b,c\n', 400, /no column "produkt".*product/],
    ['a missing column', 'title,product\na,b\n', 400, /docType is missing/],
    ['a column twice', 'title,Title,docType,product\n', 400, /title is there twice/],
    ['semicolons', 'title;docType;product\na;b;c\n', 400, /separated by commas/],
    ['UTF-16', Buffer.from('\ufefftitle,docType,product\n', 'utf16le'), 400, /UTF-8/],
    ['a short row', 'title,docType,product\na,b\n', 422, /has 2 fields, the header has 3/],
    ['an open quote', 'title,docType,product\n"a,b,c\n', 422, /never closed/],
    ['a title too long', `title,docType,product\n${'x'.repeat(501)},b,c\n`, 422, /row 1 \/title/],
  ]
  for (const [name, text, status, says] of refused) {
    it(`${name} is refused with its place`, async () => {
      const before = await counts()
      const answer = await csv(text)
      expect(answer.statusCode, answer.body).toBe(status)
      expect(`${answer.json().detail} ${JSON.stringify(answer.json().errors)}`).toMatch(says)
      expect(await counts()).toEqual(before)
    })
  }

  it('nothing but a header is an import of nothing', async () => {
    expect((await csv('title,docType,product\n')).json().rows.total).toBe(0)
  })
})

describe('a dry run', () => {
  it('says the same as the real one and writes nothing', async () => {
    const before = await counts()
    const google = { workspaceProvider: 'google', providerFileId: 'dry' }
    const rows = [
      row(1, google),
      row(2, google),
      row(3, { owners: ['nobody@example.org'] }),
      row(4),
    ]
    const answer = await send({ rows, query: '?dryRun=true&mode=best-effort' })
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({
      ...{ dryRun: true, rows: { total: 4, imported: 2, failed: 2 } },
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

describe('what may come', () => {
  it('needs a key, a permission and a known media type', async () => {
    const body = '{}\n'
    const type = { 'content-type': 'application/x-ndjson' }
    const as = { as: 'olga', role: 'operator' as const }
    const url = '/api/v2/imports'
    expect((await server.ask('POST', url, { ...as, body, headers: type })).json().code).toBe(
      'HMD_KEY_MISSING',
    )
    const keyed = { 'idempotency-key': 'k' }
    const editor = { as: 'ada', role: 'editor' as const, body, headers: { ...type, ...keyed } }
    expect((await server.ask('POST', url, editor)).statusCode).toBe(403)
    for (const wrong of ['application/json', 'text/plain', 'application/xml']) {
      const headers = { 'content-type': wrong, ...keyed }
      expect((await server.ask('POST', url, { ...as, body, headers })).statusCode, wrong).toBe(415)
    }
    const gzip = { ...type, ...keyed, 'content-encoding': 'gzip' }
    expect((await server.ask('POST', url, { ...as, body, headers: gzip })).statusCode).toBe(415)
  })

  it('other routes still take no CSV', async () => {
    const answer = await server.ask('POST', '/api/v2/drafts', {
      ...{ as: 'ada', body: 'a,b\n', headers: { 'content-type': 'text/csv' } },
    })
    expect(answer.statusCode).toBe(415)
  })

  it('a line that is too long costs its own row only', async () => {
    const long = JSON.stringify(row(2, { content: 'x'.repeat(4_194_304) }))
    const text = `${JSON.stringify(row(1))}\n${long}\n${JSON.stringify(row(3))}\n`
    const answer = await send({ text, query: '?mode=best-effort' })
    expect(answer.json()).toMatchObject({
      ...{ rows: { total: 3, imported: 2, failed: 1 } },
      errors: [{ row: 2, line: 2, detail: 'is longer than 4194304 bytes' }],
    })
  })

  it('text the database cannot keep is refused by row', async () => {
    const text = `{"title":"a\\u0000b","docType":"RFC","product":"Labs"}\n{"title":"\\ud800","docType":"RFC","product":"Labs"}\n[1]\n`
    const answer = await send({ text })
    expect(answer.json().errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      ...['row 1 /title', 'row 2 /title', 'row 3 /'],
    ])
  })

  it('more than a thousand wrong rows are counted, and a thousand are listed', async () => {
    const answer = await send({ text: '{}\n'.repeat(1_500), query: '?mode=best-effort' })
    expect(answer.json().rows).toEqual({ total: 1_500, done: 1_500, imported: 0, failed: 1_500 })
    expect(answer.json().errors.length).toBe(1_000)
  })
})

describe('a connection cut in the middle', () => {
  for (const mode of ['all', 'best-effort']) {
    it(`writes nothing (${mode}), and no file stays`, async () => {
      await server.app.listen({ host: '127.0.0.1', port: 0 }).catch(() => {})
      const { port } = server.app.server.address() as AddressInfo
      const before = await counts()
      const [imports] = await server.db.query('select count(*)::int from hermod.import')
      const sent = httpRequest({
        ...{ port, method: 'POST', path: `/api/v2/imports?mode=${mode}` },
        headers: {
          authorization: `Bearer ${await server.token('olga', 'operator')}`,
          'content-type': 'application/x-ndjson',
          'idempotency-key': newKey(),
          'content-length': '10000000',
        },
      })
      sent.on('error', () => {})
      const text = many(2_000)
        .map((one) => `${JSON.stringify(one)}\n`)
        .join('')
      await new Promise((resolve) => sent.write(text, resolve))
      await eventually(async () => !isLinux || (await spools()) === 1)
      sent.destroy()
      await eventually(async () => (await spools()) === 0)
      expect(await counts()).toEqual(before)
      expect(await server.db.query('select count(*)::int from hermod.import')).toEqual([imports])
    })
  }

  const isLinux = process.platform === 'linux'

  /** Files of imports this process holds open; elsewhere they cannot be counted. */
  async function spools(): Promise<number> {
    const open = await readdir('/proc/self/fd').catch(() => [])
    const links = await Promise.all(
      open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    )
    return links.filter((link) => link.includes('hermod-import-')).length
  }
})
