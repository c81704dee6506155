// What an import over HTTP may be made of, and what is refused: CSV, media types, lines and text of any
// kind, and connections cut in the middle.

import { readdir, readlink } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { many, newKey, row, useImports } from './use-imports.ts'

const { server, send, counts } = useImports()

describe('CSV', () => {
  const csv = (text: string | Buffer, query = '') => send({ text, type: 'text/csv; charset=utf-8', query })

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
        title: 'One, "quoted"',
        content: 'line 1\r\nline 2',
        tags: ['a', 'b'],
        owners: 2,
        custom_fields: { team: 'Search' },
        workspace_provider: 's3',
      },
      {
        title: 'Ünïcödé',
        content: '',
        tags: [],
        owners: 1,
        custom_fields: {},
        workspace_provider: 'local',
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
    ['an open quote', 'title,docType,product\n"a,b,c\n', 400, /line 2.*never closed/],
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

describe('what may come', () => {
  it('needs a key, a permission and a known media type', async () => {
    const body = '{}\n'
    const type = { 'content-type': 'application/x-ndjson' }
    const as = { as: 'olga', role: 'operator' as const }
    const url = '/api/v2/imports'
    expect((await server.ask('POST', url, { ...as, body, headers: type })).json().code).toBe('HMD_KEY_MISSING')
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
      as: 'ada',
      body: 'a,b\n',
      headers: { 'content-type': 'text/csv' },
    })
    expect(answer.statusCode).toBe(415)
  })

  it('a line that is too long costs its own row only', async () => {
    const long = JSON.stringify(row(2, { content: 'x'.repeat(4_194_304) }))
    const text = `${JSON.stringify(row(1))}\n${long}\n${JSON.stringify(row(3))}\n`
    const answer = await send({ text, query: '?mode=best-effort' })
    expect(answer.json()).toMatchObject({
      rows: { total: 3, imported: 2, failed: 1 },
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
        port,
        method: 'POST',
        path: `/api/v2/imports?mode=${mode}`,
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
    const links = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    return links.filter((link) => link.includes('hermod-import-')).length
  }
})
