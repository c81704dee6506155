// `hermod import` as a process of its own: files, standard input, exit codes, and a file far larger
// than the memory it may have.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sized } from '../../../../test/support/sized.ts'
import { useServer } from '../support/server.ts'

/** 21 kB each; at full size more than the memory it has. */
const large = sized(1_000, 3_500)

const server = useServer()
const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hermod-command-'))
  await server.ask('GET', '/api/v2/documents', { as: 'ada' })
})
afterAll(() => rm(folder, { recursive: true }))

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly talk: string
}

async function hermod(args: readonly string[], input?: Iterable<string>, node: string[] = []) {
  const child = spawn(process.execPath, [...node, bin, 'import', ...args], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: server.db.url },
  })
  const said = { out: '', talk: '' }
  child.stdout.on('data', (piece) => {
    said.out += piece
  })
  child.stderr.on('data', (piece) => {
    said.talk += piece
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  // A command that ends early closes its input.
  await pipeline(Readable.from(input ?? []), child.stdin).catch(() => {})
  return { code: await ended, ...said } satisfies Ran
}

async function file(name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text)
  return join(folder, name)
}

const count = async () =>
  (await server.db.query<{ count: number }>('select count(*)::int from hermod.document'))[0]?.count

const csv = 'title,docType,product,owners\nOne,RFC,Cli,ada@example.org\nTwo,RFC,Cli,\n'

describe('hermod import', () => {
  it('a dry run, then the file, then the same file again', async () => {
    const path = await file('documents.csv', csv)
    const as = ['--as', 'ada@example.org']
    const dry = await hermod([path, ...as, '--dry-run'])
    expect(dry).toMatchObject({
      code: 0,
      out: '2 documents would be imported, 0 rows are wrong.\n',
    })
    expect(await count()).toBe(0)
    const first = await hermod([path, ...as])
    expect(first.code, first.talk).toBe(0)
    expect(first.out).toMatch(/^2 documents imported, 0 rows failed\. Import [0-9a-f-]{36}\.$/m)
    const again = await hermod([path, ...as, '--json'])
    expect(JSON.parse(again.out)).toMatchObject({ repeated: true, rows: { imported: 2 } })
    expect(await count()).toBe(2)
    const [row] = await server.db.query(
      `select distinct modified_by_identity ~ '^shell:' as shell, api_endpoint from hermod.document_modification_log`,
    )
    expect(row).toEqual({ shell: true, api_endpoint: 'hermod import' })
  })

  it('wrong rows: exit 1, their places on stderr, and with --best-effort the good ones are in', async () => {
    const path = await file('wrong.ndjson', '{"title":"x"}\n{"title":"Good","docType":"RFC","product":"Cli"}\n')
    const before = (await count()) ?? 0
    const all = await hermod([path, '--as', 'ada@example.org'])
    expect(all.code).toBe(1)
    expect(all.talk).toContain('row 1 (line 1) /docType is missing')
    expect(await count()).toBe(before)
    const some = await hermod([path, '--as', 'ada@example.org', '--best-effort', '--json'])
    expect(some.code).toBe(1)
    expect(JSON.parse(some.out)).toMatchObject({ rows: { imported: 1, failed: 1 } })
    expect(await count()).toBe(before + 1)
  })

  const wrong: [string[], RegExp][] = [
    [['a.txt', '--as', '1'], /cannot be told by its name/],
    [['a.csv', '--as', 'nobody@example.org'], /--as names nobody/],
  ]
  it('wrong usage is exit 2 and says what to do', async () => {
    for (const [args, says] of wrong) {
      const { code, talk } = await hermod(args)
      expect({ code, talk: says.test(talk) ? 'as expected' : talk }).toEqual({
        code: 2,
        talk: 'as expected',
      })
    }
  })

  it('a large file goes through in little memory', async () => {
    const content = 'Words that repeat, so that the disk does not suffer. '.repeat(400)
    function* rows() {
      for (let n = 0; n < large; n++) {
        yield `${JSON.stringify({ title: `Large ${n}`, docType: 'RFC', product: 'Cli', content })}\n`
      }
    }
    const args = ['-', '--format', 'ndjson', '--as', 'ada@example.org', '--json']
    const { code, talk, out } = await hermod(args, rows(), ['--max-old-space-size=64'])
    expect(code, talk).toBe(0)
    expect(JSON.parse(out).rows.imported).toBe(large)
  }, 60_000)
})
