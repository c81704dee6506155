import {
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hashOf } from '../../src/documents/create.ts'
import { conflictNameOf, fileNameOf } from '../../src/documents/workspace/file-names.ts'
import { WorkspaceFolder } from '../../src/documents/workspace/folder.ts'
import { type ScanReport, scanWorkspace } from '../../src/documents/workspace/scan.ts'
import { watchWorkspace } from '../../src/documents/workspace/watch.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
let folder: WorkspaceFolder

beforeAll(async () => {
  folder = await WorkspaceFolder.open(server.folder)
  await server.work()
})

const path = (name: string) => join(server.folder, name)
const content = (name: string) => readFile(path(name), 'utf8')
const scan = (names?: string[]): Promise<ScanReport> =>
  scanWorkspace(server.platform, folder, { settleMs: 0, ...(names && { names }) })

interface Made {
  readonly id: string
  readonly version: string
  readonly name: string
}

async function draft(text: string): Promise<Made> {
  const body = { title: 'A draft', docType: 'RFC', product: 'Labs', content: text }
  const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body })
  expect(answer.statusCode, answer.body).toBe(201)
  const { id, version, providerFileId } = answer.json()
  return { id, version, name: fileNameOf(providerFileId) }
}

async function edit({ id }: Made, changes: object): Promise<void> {
  const before = await server.ask('GET', `/api/v2/drafts/${id}`, { as: 'ada' })
  const { version } = before.json()
  const answer = await server.ask('PATCH', `/api/v2/drafts/${id}`, {
    as: 'ada',
    version,
    body: changes,
  })
  expect(answer.statusCode, answer.body).toBe(200)
}

const stored = async ({ id }: Made) =>
  (await server.ask('GET', `/api/v2/drafts/${id}`, { as: 'ada' })).json()

describe('files follow the database', () => {
  it('created, edited, deleted', async () => {
    const made = await draft('one')
    await server.caughtUp()
    expect(await content(made.name)).toBe('one')
    await edit(made, { content: 'two' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('two')
    const { version } = await stored(made)
    await server.ask('DELETE', `/api/v2/drafts/${made.id}`, { as: 'ada', version })
    await server.caughtUp()
    expect(await readdir(server.folder)).not.toContain(made.name)
  })

  it('an older event never overwrites a newer file, nor brings a deleted one back', async () => {
    const file = { documentId: 'd', providerFileId: 'older', version: '1' }
    await folder.put('older.md', { ...file, position: '7', content: 'new' })
    expect(await folder.put('older.md', { ...file, position: '6', content: 'old' })).toBe(
      'superseded',
    )
    expect(await content('older.md')).toBe('new')
    await folder.put('older.md', { ...file, position: '9', version: '2', content: null })
    expect(await folder.put('older.md', { ...file, position: '8', content: 'late' })).toBe(
      'superseded',
    )
    expect(await readdir(server.folder)).not.toContain('older.md')
  })

  it('other providers have no files', async () => {
    const body = {
      ...{ title: 'Far away', docType: 'RFC', product: 'Labs', content: 'not here' },
      ...{ workspaceProvider: 'google', providerFileId: 'far-away' },
    }
    await server.ask('POST', '/api/v2/documents', { as: 'ada', body })
    await server.caughtUp()
    expect(await readdir(server.folder)).not.toContain('far-away.md')
  })

  it('a file that is gone comes back', async () => {
    const made = await draft('stays')
    await server.caughtUp()
    await rm(path(made.name))
    expect((await scan()).counts.restored).toBe(1)
    expect(await content(made.name)).toBe('stays')
  })
})

describe('edits of files reach the database', () => {
  it('as a change of content by the system, and become searchable', async () => {
    const made = await draft('before')
    await server.caughtUp()
    await writeFile(path(made.name), 'changed by xylophone')
    expect((await scan()).found).toEqual([
      { file: made.name, kind: 'recorded', documentId: made.id },
    ])
    const { content: now, version, lastModifiedBy } = await stored(made)
    expect({ now, version, lastModifiedBy }).toEqual({
      ...{ now: 'changed by xylophone', version: '2', lastModifiedBy: null },
    })
    const [row] = await server.db.query(
      `select modification_type, modified_by_person_id, modified_by_identity, event_id is not null as told
         from hermod.document_modification_log where document_id = $1 order by id desc limit 1`,
      [made.id],
    )
    expect(row).toEqual({
      modification_type: 'content_changed',
      modified_by_person_id: null,
      modified_by_identity: 'system:local-workspace',
      told: true,
    })
    await server.caughtUp()
    const found = await server.ask('GET', '/api/v2/search?q=xylophone&index=drafts', { as: 'ada' })
    expect(found.json().hits.map(({ id }: { id: string }) => id)).toEqual([made.id])
    expect((await scan()).counts.recorded).toBe(0)
  })

  it('one edit after the other, and back to what was there first', async () => {
    const made = await draft('first')
    await server.caughtUp()
    for (const text of ['second', 'third', 'first']) {
      await writeFile(path(made.name), text)
      expect((await scan([made.name])).counts.recorded, text).toBe(1)
    }
    expect(await stored(made)).toMatchObject({ content: 'first', version: '4' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('first')
  })

  it('and survive a change of the title that is on its way', async () => {
    const made = await draft('text')
    await server.caughtUp()
    await writeFile(path(made.name), 'better text')
    await edit(made, { title: 'Another title' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('better text')
    await scan([made.name])
    expect(await stored(made)).toMatchObject({ content: 'better text', title: 'Another title' })
  })

  it('only once the file lies still', async () => {
    const made = await draft('slow')
    await server.caughtUp()
    await writeFile(path(made.name), 'half of')
    const report = await scanWorkspace(server.platform, folder, {
      names: [made.name],
      settleMs: 60_000,
    })
    expect(report.counts.later).toBe(1)
    expect(await stored(made)).toMatchObject({ content: 'slow', version: '1' })
  })

  it('a watcher finds them by itself', async () => {
    const made = await draft('watched')
    await server.caughtUp()
    let heard: (report: ScanReport) => void = () => {}
    const scanned = new Promise<void>((resolve) => {
      heard = ({ found }) => {
        if (found.some(({ file, kind }) => file === made.name && kind === 'recorded')) resolve()
      }
    })
    const watching = watchWorkspace(server.platform, {
      ...{ everyMs: 100, settleMs: 20, onScan: (report) => heard(report) },
    })
    await writeFile(path(made.name), 'seen')
    await scanned
    await watching.stop()
    await watching.stop()
    expect(await stored(made)).toMatchObject({ content: 'seen', version: '2' })
  })

  it('two scans at once record one change', async () => {
    const made = await draft('x')
    await server.caughtUp()
    await writeFile(path(made.name), 'y')
    const reports = await Promise.all([scan([made.name]), scan([made.name])])
    expect(reports.map(({ counts }) => counts.recorded).sort()).toEqual([0, 1])
    expect(await stored(made)).toMatchObject({ content: 'y', version: '2' })
  })
})

describe('when both changed', () => {
  it('the database wins and the text of the file is kept beside it: the event comes first', async () => {
    const made = await draft('base')
    await server.caughtUp()
    await writeFile(path(made.name), 'from the file')
    await edit(made, { content: 'from the API' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('from the API')
    expect(await content(conflictNameOf(made.name, hashOf('from the file')))).toBe('from the file')
    expect((await scan([made.name])).counts.unchanged).toBe(1)
    expect(await stored(made)).toMatchObject({ content: 'from the API', version: '2' })
  })

  it('the same when the scan comes first', async () => {
    const made = await draft('base')
    await server.caughtUp()
    await writeFile(path(made.name), 'from the file')
    await server.platform.outbox.pause('workspace-local', { actor: 'test', reason: 'comes second' })
    await edit(made, { content: 'from the API' })
    expect((await scan([made.name])).counts.conflict).toBe(1)
    await server.platform.outbox.resume('workspace-local', { actor: 'test', reason: 'go on' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('from the API')
    expect(await content(conflictNameOf(made.name, hashOf('from the file')))).toBe('from the file')
  })

  it('a deleted document leaves the edited text behind', async () => {
    const made = await draft('base')
    await server.caughtUp()
    await writeFile(path(made.name), 'my precious edit')
    await server.ask('DELETE', `/api/v2/drafts/${made.id}`, { as: 'ada', version: 1 })
    await server.caughtUp()
    expect(await readdir(server.folder)).not.toContain(made.name)
    expect(await content(conflictNameOf(made.name, hashOf('my precious edit')))).toBe(
      'my precious edit',
    )
  })
})

describe('a death at any moment', () => {
  it('between commit and file: the old text is not taken for an edit', async () => {
    const made = await draft('one')
    await server.caughtUp()
    await server.platform.outbox.pause('workspace-local', {
      actor: 'test',
      reason: 'as if it died',
    })
    await edit(made, { content: 'two' })
    expect((await scan([made.name])).counts.unchanged).toBe(1)
    expect(await stored(made)).toMatchObject({ content: 'two', version: '2' })
    await server.platform.outbox.resume('workspace-local', { actor: 'test', reason: 'go on' })
    await server.caughtUp()
    expect(await content(made.name)).toBe('two')
  })

  it('an edit made on the text of an interrupted replacement is kept, not built upon', async () => {
    const made = await draft('one')
    await server.caughtUp()
    const manifest = await folder.manifestOf(made.name)
    if (manifest === undefined) throw new Error('the file has a manifest')
    await edit(made, { content: 'two' })
    await server.caughtUp()
    // As a crash right before the replacement leaves it, with the edit on top of the old text.
    await writeFile(path(made.name), 'one and more')
    await folder.saveManifest(made.name, { ...manifest, written: [hashOf('one'), hashOf('two')] })
    expect((await scan([made.name])).counts.later).toBe(1)
    const old = new Date(Date.now() - 120_000)
    await utimes(join(folder.ownPath, `${made.name}.json`), old, old)
    expect((await scan([made.name])).counts.conflict).toBe(1)
    expect(await content(made.name)).toBe('two')
    expect(await content(conflictNameOf(made.name, hashOf('one and more')))).toBe('one and more')
  })
})

describe('names', () => {
  const corpus = [
    ...[
      '../../etc/passwd',
      '..',
      '.',
      '/etc/passwd',
      'a/b',
      'a\\b',
      'C:\\x',
      '\0',
      'a\nb',
      '~',
      'CON',
    ],
    ...[
      'nul',
      'com1',
      '.hermod',
      '.hermod/x',
      'a.md',
      'a.conflict-0123456789ab',
      'A',
      'é',
      'x'.repeat(512),
    ],
    ...['%2e%2e%2f', '‮txt', ' ', 'a ', 'a.', '-', 'a:b', 'a|b', '𝒳', '…', 'file~0123'],
  ]

  it('lie in the folder, whatever the id, and never on each other', () => {
    const names = corpus.map(fileNameOf)
    for (const name of names) expect(name).toMatch(/^[a-z0-9_~-]{1,100}\.md$/)
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(corpus.length)
    for (const name of names) expect(name).not.toMatch(/^(con|nul|com1)\.md$/)
  })

  it('a usual id is its own name', () => {
    expect(fileNameOf('5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11')).toBe(
      '5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11.md',
    )
  })
})

describe('what is not ours', () => {
  let made: Made
  beforeEach(async () => {
    made = await draft('mine')
    await server.caughtUp()
  })

  it('a new file is reported and not imported', async () => {
    await writeFile(path('my-own-notes.md'), 'notes')
    expect((await scan(['my-own-notes.md'])).found).toEqual([
      { file: 'my-own-notes.md', kind: 'unknown' },
    ])
    await rm(path('my-own-notes.md'))
  })

  it('a link to a file elsewhere is not read, and not written through', async () => {
    const secret = join(folder.ownPath, 'secret.txt')
    await writeFile(secret, 'do not read me')
    await rm(path(made.name))
    await symlink(secret, path(made.name))
    expect((await scan([made.name])).found[0]).toMatchObject({
      ...{ kind: 'refused', why: 'is a symbolic link' },
    })
    await edit(made, { content: 'newer' })
    await server.caughtUp()
    expect(await readFile(secret, 'utf8')).toBe('do not read me')
    expect(await content(made.name)).toBe('newer')
    expect(await stored(made)).toMatchObject({ content: 'newer', version: '2' })
    await rm(secret)
  })

  it('a second name of a file elsewhere is not read', async () => {
    const other = join(folder.ownPath, 'other.txt')
    await writeFile(other, 'somebody else’s')
    await rm(path(made.name))
    await link(other, path(made.name))
    expect((await scan([made.name])).found[0]).toMatchObject({
      ...{ kind: 'refused', why: 'has a second name (hard link)' },
    })
    await rm(other)
  })

  const refused: [string, (file: string) => Promise<unknown>, RegExp][] = [
    ['no UTF-8', (file) => writeFile(file, Buffer.from([0x61, 0xff, 0x62])), /not UTF-8/],
    ['NUL', (file) => writeFile(file, 'a\0b'), /NUL/],
    ['too long', (file) => writeFile(file, 'x'.repeat(2_097_153)), /longer than 2097152/],
    ['far too large', (file) => writeFile(file, Buffer.alloc(8_388_609, 97)), /larger than/],
    [
      'a folder',
      async (file) => {
        await rm(file)
        await mkdir(file)
      },
      /not a regular file/,
    ],
  ]
  for (const [name, change, why] of refused) {
    it(`${name} is said, and changes nothing`, async () => {
      await change(path(made.name))
      const [finding] = (await scan([made.name])).found
      expect(finding).toMatchObject({ file: made.name, kind: 'refused' })
      expect(finding?.why).toMatch(why)
      expect(await stored(made)).toMatchObject({ content: 'mine', version: '1' })
      await rm(path(made.name), { recursive: true })
    })
  }
})

describe('the folder', () => {
  it('gone from its place is a matter for a person, and nothing is written elsewhere', async () => {
    await server.caughtUp()
    const elsewhere = `${server.folder}-moved`
    await rename(server.folder, elsewhere)
    await mkdir(server.folder)
    try {
      await expect(scan()).rejects.toThrow(/is the disk mounted/)
      await expect(folder.assertThere()).rejects.toThrow(/is the disk mounted/)
    } finally {
      await rm(server.folder, { recursive: true })
      await rename(elsewhere, server.folder)
    }
  })
})
