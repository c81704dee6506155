// Drafts in files are for the account of the server alone: other users of the machine neither read nor list them.

import { chmod, mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { WorkspaceFolder } from '../../src/documents/workspace/folder.ts'
import { useWorkspace } from './use-workspace.ts'

const world = useWorkspace()
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
let place = ''

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'hermod-modes-'))
})
afterAll(() => rm(place, { recursive: true, force: true }))

it('a file and what we note about it are 0600', async () => {
  const made = await world.draft('A secret draft')
  await world.server.caughtUp()
  expect(await modeOf(world.path(made.name))).toBe('600')
  expect(await modeOf(join(world.folder().ownPath, `${made.name}.json`))).toBe('600')
  await world.edit(made, { content: 'Another secret' })
  await world.server.caughtUp()
  expect(await modeOf(world.path(made.name))).toBe('600')
})

it('a new folder is 0700, one that others could enter is closed to them', async () => {
  const fresh = join(place, 'a', 'fresh')
  const folder = await WorkspaceFolder.open(fresh)
  expect([await modeOf(fresh), await modeOf(folder.ownPath)]).toEqual(['700', '700'])
  const old = join(place, 'old')
  await mkdir(old)
  await chmod(old, 0o755)
  await WorkspaceFolder.open(old)
  expect(await modeOf(old)).toBe('750')
})
