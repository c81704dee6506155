// Documents of the provider `local` and their files: each follows the other, nobody's text is lost when
// both changed, nor when a process dies in between.

import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hashOf } from '../../src/documents/create.ts'
import { conflictNameOf } from '../../src/documents/workspace/file-names.ts'
import { type ScanReport, scanWorkspace } from '../../src/documents/workspace/scan.ts'
import { localContents } from '../../src/documents/workspace/sink.ts'
import { watchWorkspace } from '../../src/documents/workspace/watch.ts'
import { useWorkspace } from './use-workspace.ts'

const { server, folder, path, content, scan, draft, edit, stored } = useWorkspace()

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
    await folder().put('older.md', { ...file, position: '7', content: 'new' })
    expect(await folder().put('older.md', { ...file, position: '6', content: 'old' })).toBe('superseded')
    expect(await content('older.md')).toBe('new')
    await folder().put('older.md', { ...file, position: '9', version: '2', content: null })
    expect(await folder().put('older.md', { ...file, position: '8', content: 'late' })).toBe('superseded')
    expect(await readdir(server.folder)).not.toContain('older.md')
  })

  it('other providers have no files', async () => {
    const body = {
      title: 'Far away',
      docType: 'RFC',
      product: 'Labs',
      content: 'not here',
      workspaceProvider: 'google',
      providerFileId: 'far-away',
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
    expect((await scan()).found).toEqual([{ file: made.name, kind: 'recorded', documentId: made.id }])
    const { content: now, version, lastModifiedBy } = await stored(made)
    expect({ now, version, lastModifiedBy }).toEqual({
      now: 'changed by xylophone',
      version: '2',
      lastModifiedBy: null,
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

  it('a row that was read before the last edit does not bring the edit before it back', async () => {
    const made = await draft('first')
    await server.caughtUp()
    await server.platform.outbox.pause('workspace-local', { actor: 'test', reason: 'delivered by hand' })
    const save = async (text: string) => {
      await writeFile(path(made.name), text)
      expect((await scan([made.name])).counts.recorded, text).toBe(1)
    }
    await save('second')
    // As the sink does it: the row first, then the turn of the file, which a scan may have meanwhile.
    const row = (await localContents(server.platform.pool, [made.id])).get(made.id)
    const position = String(BigInt((await folder().manifestOf(made.name))?.position ?? 0) + 1n)
    await save('third')
    if (!row) throw new Error('the document has a row')
    expect(await folder().put(made.name, { ...row, position })).toBe('superseded')
    expect(await content(made.name)).toBe('third')
    await save('first')
    await server.platform.outbox.resume('workspace-local', { actor: 'test', reason: 'go on' })
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
    const report = await scanWorkspace(server.platform, folder(), {
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
      everyMs: 100,
      settleMs: 20,
      onScan: (report) => heard(report),
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
    expect(await content(conflictNameOf(made.name, hashOf('my precious edit')))).toBe('my precious edit')
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
    const manifest = await folder().manifestOf(made.name)
    if (manifest === undefined) throw new Error('the file has a manifest')
    await edit(made, { content: 'two' })
    await server.caughtUp()
    // As a crash right before the replacement leaves it, with the edit on top of the old text.
    await writeFile(path(made.name), 'one and more')
    await folder().saveManifest(made.name, { ...manifest, written: [hashOf('one'), hashOf('two')] })
    expect((await scan([made.name])).counts.later).toBe(1)
    const old = new Date(Date.now() - 120_000)
    await utimes(join(folder().ownPath, `${made.name}.json`), old, old)
    expect((await scan([made.name])).counts.conflict).toBe(1)
    expect(await content(made.name)).toBe('two')
    expect(await content(conflictNameOf(made.name, hashOf('one and more')))).toBe('one and more')
  })
})
