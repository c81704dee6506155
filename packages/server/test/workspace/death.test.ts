// A process may die before any of its calls into the file system: for each of them the file is
// replaced again by whoever comes next, no text is lost and none is taken for somebody's edit.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OutboxEvent } from 'hermod'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { WorkspaceFolder } from '../../src/documents/workspace/folder.ts'

type Sink = typeof import('../../src/documents/workspace/sink.ts')

const life = { calls: 0, diesAt: Number.POSITIVE_INFINITY }

/** The real file system, which refuses everything from one call on. */
function mortal(real: Record<string, unknown>): Record<string, unknown> {
  const counted = ['link', 'lstat', 'open', 'readFile', 'rename', 'unlink', 'rm'].map((name) => [
    name,
    (...args: unknown[]) => {
      if (++life.calls >= life.diesAt) return Promise.reject(new Error('died'))
      return (real[name] as (...args: unknown[]) => unknown)(...args)
    },
  ])
  return { ...real, ...Object.fromEntries(counted) }
}

let root: string
let folder: WorkspaceFolder
let fileSink: Sink['fileSink']
// Test files share their modules: these are loaded afresh, and given up afterwards.
beforeAll(async () => {
  vi.doMock('node:fs/promises', async (original) => mortal(await original()))
  vi.resetModules()
  const afresh = await import('../../src/documents/workspace/folder.ts')
  ;({ fileSink } = await import('../../src/documents/workspace/sink.ts'))
  root = await mkdtemp(join(tmpdir(), 'hermod-death-'))
  folder = await afresh.WorkspaceFolder.open(root)
})
afterAll(async () => {
  vi.doUnmock('node:fs/promises')
  vi.resetModules()
  await rm(root, { recursive: true })
})

const one = { documentId: 'd', providerFileId: 'p', version: '1', position: '1', content: 'one' }
const two = { ...one, version: '2', position: '2', content: 'two' }
const gone = { ...one, version: '2', position: '2', content: null }

async function until(step: number, work: () => Promise<unknown>): Promise<boolean> {
  Object.assign(life, { calls: 0, diesAt: step })
  try {
    await work()
    return false
  } catch (error) {
    expect((error as Error).message).toBe('died')
    return true
  } finally {
    life.diesAt = Number.POSITIVE_INFINITY
  }
}

const files = async (stem: string) => (await readdir(root)).filter((file) => file.startsWith(`${stem}.`))

/** Dies before call 1, 2, 3 … until it lives to the end; how many deaths it were. */
async function everyDeath(
  prepare: (name: string) => Promise<void>,
  work: (name: string) => Promise<unknown>,
  check: (name: string, stem: string) => Promise<void>,
  title: string,
): Promise<number> {
  for (let step = 1; ; step++) {
    const stem = `${title}-${step}`
    const name = `${stem}.md`
    await prepare(name)
    const died = await until(step, () => work(name))
    await work(name)
    await check(name, stem)
    if (!died) return step - 1
  }
}

describe('a death before every call', () => {
  it('while a file is replaced: the new text is there, and no conflict', async () => {
    const deaths = await everyDeath(
      async (name) => void (await folder.put(name, one)),
      (name) => folder.put(name, two),
      async (name, stem) => {
        expect(await readFile(join(root, name), 'utf8'), stem).toBe('two')
        expect(await files(stem)).toEqual([name])
        expect((await folder.manifestOf(name))?.written).toHaveLength(1)
      },
      'replaced',
    )
    expect(deaths).toBeGreaterThan(8)
  })

  it('while a file is deleted', async () => {
    const deaths = await everyDeath(
      async (name) => void (await folder.put(name, one)),
      (name) => folder.put(name, gone),
      async (_name, stem) => expect(await files(stem)).toEqual([]),
      'deleted',
    )
    expect(deaths).toBeGreaterThan(4)
  })

  it('while a file that somebody edited is replaced: both texts are there', async () => {
    const deaths = await everyDeath(
      async (name) => {
        await folder.put(name, one)
        await writeFile(join(root, name), 'edited')
      },
      (name) => folder.put(name, two),
      async (name, stem) => {
        const all = await files(stem)
        expect(all, stem).toHaveLength(2)
        const texts = await Promise.all(all.map((file) => readFile(join(root, file), 'utf8')))
        expect(texts.sort()).toEqual(['edited', 'two'])
        expect(await readFile(join(root, name), 'utf8')).toBe('two')
      },
      'edited',
    )
    expect(deaths).toBeGreaterThan(8)
  })
})

describe('outcomes', () => {
  const event = (content: object | null) =>
    ({ payload: content, position: 5n, aggregateId: 'd' }) as unknown as OutboxEvent
  const deliver = (events: OutboxEvent[]) =>
    fileSink(root).deliver(events, {} as never) as Promise<{ outcome: string; code?: string }[]>

  it('say per event what became of it', async () => {
    const { position: _, ...content } = { ...one, providerFileId: 'told' }
    const outcomes = await deliver([event(content), event(null)])
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['delivered', 'delivered'])
    expect(await readFile(join(root, 'told.md'), 'utf8')).toBe('one')
  })

  it('a folder that is gone holds everything back', async () => {
    await rm(join(root, '.hermod'), { recursive: true })
    const sink = fileSink(root)
    await sink.probe?.({} as never)
    await rm(join(root, '.hermod'), { recursive: true })
    const [outcome] = (await sink.deliver([event(null)], {} as never)) as { outcome: string }[]
    expect(outcome).toMatchObject({ outcome: 'misconfigured', code: 'folder_gone' })
  })
})
