// `hermod people` as people run it: a few real processes of the built packages for exit codes and
// streams, everything else in this process.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { progressBar, Terminal } from 'hermod/cli'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { command } from '../../src/cli/commands/people.ts'
import { usePeople } from './use-people.ts'

const people = usePeople()
const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hermod-people-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => vi.restoreAllMocks())
const project = join(folder, 'hermod.toml')
writeFileSync(
  project,
  `[[issuers]]
name = "google"
issuer = "https://google.test"
audience = "hermod"
jwksUri = "https://google.test/jwks"
`,
)

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** A process of its own. */
function hermod(...args: readonly string[]): Promise<Ended> {
  const clean = Object.entries(process.env).filter(([name]) => !/^HERMOD_/.test(name))
  const env = { ...Object.fromEntries(clean), DATABASE_URL: people.db.url }
  return new Promise((resolve) => {
    execFile(process.execPath, [bin, 'people', ...args], { cwd: folder, env }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}

type Values = Readonly<Record<string, string | boolean>>

/** The same command in this process; what it refuses is thrown. */
async function run(args: readonly string[], values: Values = {}): Promise<Ended> {
  const ended = { out: '', err: '' }
  const hear = (to: 'out' | 'err') => (text: unknown) => {
    ended[to] += String(text)
    return true
  }
  vi.spyOn(process.stdout, 'write').mockImplementation(hear('out'))
  vi.spyOn(process.stderr, 'write').mockImplementation(hear('err'))
  const { json = false, yes = false } = values
  const terminal = new Terminal({
    json: json === true,
    yes: yes === true,
    plain: false,
    quiet: false,
    color: false,
    input: false,
  })
  try {
    const given = { url: people.db.url, config: project, ...values }
    const code = await command.run({ args, values: given, env: {}, terminal })
    return { code, ...ended }
  } finally {
    vi.restoreAllMocks()
  }
}

const json = async (args: readonly string[], values: Values = {}) => {
  const { err, out } = await run(args, { ...values, json: true, yes: true })
  expect(err).toBe('')
  return JSON.parse(out)
}

describe('hermod people', { timeout: 60_000 }, () => {
  it('what is wrong is refused before anything is opened', async () => {
    const wrong: readonly (readonly [string[], Values, RegExp])[] = [
      [['shwo'], {}, /did you mean show\?/],
      [['show'], {}, /this takes ID/],
      [['list', 'a', 'b'], {}, /this takes \[BEGINNING\]/],
      [['show', 'ada'], {}, /ID must be a number/],
      [['merge', '1', '2'], {}, /--reason is needed/],
      [['create', 'Ada'], { role: 'root' }, /--role must be one of reader, editor/],
      [['link', '1', 'x@y'], {}, /--provider must name an issuer/],
      [['link', '1', 'x@y'], { provider: 'google', type: 'x' }, /--type must be one of email/],
      [['list'], { limit: '0' }, /--limit must be 1 to/],
    ]
    for (const [args, values, says] of wrong) {
      const refused = run(args, { ...values, url: 'postgres://127.0.0.1:1/nowhere' })
      await expect(refused).rejects.toMatchObject({ code: 'HMD_USAGE', message: says })
    }
  })

  it('creates, links, unlinks, merges and unmerges', async () => {
    const google = { provider: 'google' }
    const address = { ...google, email: 'ada@example.org', verified: true }
    const ada = await json(['create', 'Ada'], { role: 'editor', ...address })
    const bob = await json(['create', 'Bob'])
    const linked = await json(['link', ada.id, 'a2@example.org'], google)
    await json(['primary', ada.id, linked.identityId])
    expect((await json(['show', ada.id])).identities).toMatchObject([
      { value: 'a2@example.org', primary: true, verifiedAt: null },
      { value: 'ada@example.org', primary: false },
    ])
    const list = await run(['list', 'ad'])
    expect(list).toMatchObject({ code: 0, err: '' })
    expect(list.out).toMatch(/^id +name +role\n *\d+ +Ada +editor\n$/)
    const dry = await run(['merge', bob.id, ada.id], { 'dry-run': true })
    expect(dry.out).toMatch(/person_identity\.person_id +0\n/)
    const merging = run(['merge', bob.id, ada.id], { reason: 'x' })
    await expect(merging).rejects.toMatchObject({ code: 'HMD_USAGE' })
    const taken = run(['link', bob.id, 'A2@example.org'], google)
    await expect(taken).rejects.toMatchObject({ code: 'HMD_CONFLICT' })

    const merged = await json(['merge', bob.id, ada.id], { reason: 'one' })
    expect(await json(['show', bob.id])).toMatchObject({
      id: ada.id,
      merges: [{ id: merged.mergeId, from: bob.id }],
    })
    expect((await run(['show', bob.id])).err).toContain(`hermod people unmerge ${merged.mergeId}`)
    const undone = await json(['unmerge', merged.mergeId], { reason: 'two' })
    expect(undone).toEqual({ mergeId: merged.mergeId, from: bob.id, into: ada.id })
    const left = await json(['unlink', ada.id, linked.identityId])
    expect(left.identities).toMatchObject([{ value: 'ada@example.org', primary: true }])
    const audit = await people.db.query(
      `select distinct endpoint, identity ~ '^shell:' as shell from hermod.person_audit
        where action in ('merged', 'unlinked') order by 1`,
    )
    expect(audit).toEqual([
      { endpoint: 'hermod people merge', shell: true },
      { endpoint: 'hermod people unlink', shell: true },
    ])
  })

  it('imports: counts, exits 1 when rows were refused, 0 when a table is whole', async () => {
    await people.db.query(
      `create table users (id int, email_address text);
       insert into users values (901, 'u1@example.org'), (902, null)`,
    )
    const dry = await json(['import'], { 'dry-run': true })
    expect(dry).toMatchObject({ dryRun: true, imported: 1, refused: 1 })
    const [done, missing, wrong] = await Promise.all([
      hermod('import'),
      hermod('import', '--table', 'no', '--json'),
      hermod('show', 'ada'),
    ])
    expect(done.code).toBe(1)
    expect(done.out).toMatch(/people imported +1\n/)
    expect(done.err).toContain('user 902 (null): the address is empty')
    expect(done.err).not.toContain('\u001b')
    expect(missing).toMatchObject({ code: 1, out: '' })
    expect(JSON.parse(missing.err).error).toMatchObject({ code: 'HMD_RULE_BROKEN' })
    expect(wrong).toMatchObject({ code: 2, out: '' })
    await people.db.query('delete from users where id = 902')
    const again = await run(['import'])
    expect(again.code).toBe(0)
    expect(again.out).toMatch(/imported before +1\n/)
  })
})

describe('the bar', () => {
  const draw = (isTTY: boolean, wanted = true) => {
    const written: string[] = []
    const stream = { isTTY, write: (text: string) => written.push(text) > 0 }
    const bar = progressBar('people', { wanted }, stream as never)
    for (const done of [0, 5, 10]) bar.show({ done, total: 10 })
    bar.end()
    return written
  }

  it('is drawn on a terminal only, and cleans up after itself', () => {
    const drawn = draw(true)
    expect(drawn[0]).toContain('0 %  0 of 10')
    expect(drawn.at(-2)).toContain('100 %  10 of 10')
    expect(drawn.at(-1)).toBe('\r\u001b[K')
    expect(draw(false)).toEqual([])
    expect(draw(true, false)).toEqual([])
  })
})
