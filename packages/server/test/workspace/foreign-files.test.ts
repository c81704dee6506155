// What else may lie in the folder of a workspace: names of any kind, files, links and folders that are
// not ours, and another folder in its place.

import { link, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { fileNameOf } from '../../src/documents/workspace/file-names.ts'
import { type Made, useWorkspace } from './use-workspace.ts'

const { server, folder, path, content, scan, draft, edit, stored } = useWorkspace()

describe('names', () => {
  const corpus = [
    ...['../../etc/passwd', '..', '.', '/etc/passwd', 'a/b', 'a\\b', 'C:\\x', '\0', 'a\nb', '~', 'CON'],
    ...['nul', 'com1', '.hermod', '.hermod/x', 'a.md', 'a.conflict-0123456789ab', 'A', 'é', 'x'.repeat(512)],
    ...['%2e%2e%2f', '‮txt', ' ', 'a ', 'a.', '-', 'a:b', 'a|b', '𝒳', '…', 'file~0123'],
  ]

  it('lie in the folder, whatever the id, and never on each other', () => {
    const names = corpus.map(fileNameOf)
    for (const name of names) expect(name).toMatch(/^[a-z0-9_~-]{1,100}\.md$/)
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(corpus.length)
    for (const name of names) expect(name).not.toMatch(/^(con|nul|com1)\.md$/)
  })

  it('a usual id is its own name', () => {
    expect(fileNameOf('5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11')).toBe('5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11.md')
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
    expect((await scan(['my-own-notes.md'])).found).toEqual([{ file: 'my-own-notes.md', kind: 'unknown' }])
    await rm(path('my-own-notes.md'))
  })

  it('a link to a file elsewhere is not read, and not written through', async () => {
    const secret = join(folder().ownPath, 'secret.txt')
    await writeFile(secret, 'do not read me')
    await rm(path(made.name))
    await symlink(secret, path(made.name))
    expect((await scan([made.name])).found[0]).toMatchObject({
      kind: 'refused',
      why: 'is a symbolic link',
    })
    await edit(made, { content: 'newer' })
    await server.caughtUp()
    expect(await readFile(secret, 'utf8')).toBe('do not read me')
    expect(await content(made.name)).toBe('newer')
    expect(await stored(made)).toMatchObject({ content: 'newer', version: '2' })
    await rm(secret)
  })

  it('a second name of a file elsewhere is not read', async () => {
    const other = join(folder().ownPath, 'other.txt')
    await writeFile(other, 'somebody else’s')
    await rm(path(made.name))
    await link(other, path(made.name))
    expect((await scan([made.name])).found[0]).toMatchObject({
      kind: 'refused',
      why: 'has a second name (hard link)',
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
      await expect(folder().assertThere()).rejects.toThrow(/is the disk mounted/)
    } finally {
      await rm(server.folder, { recursive: true })
      await rename(elsewhere, server.folder)
    }
  })
})
