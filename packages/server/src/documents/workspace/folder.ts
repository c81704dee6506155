/**
 * The folder of the local workspace: every write is a new file moved into place, nothing is read
 * through a link, and text we did not write is never overwritten: it is moved aside first.
 */
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { chmod, link, lstat, mkdir, open, readFile, realpath, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hashOf } from '../create.ts'
import { conflictNameOf } from './file-names.ts'
import { isApplied, type Manifest, readManifest } from './manifest.ts'

/** The content a document's file should have; null = the file should be deleted. */
export interface FileContent {
  readonly documentId: string
  readonly providerFileId: string
  readonly position: string
  readonly version: string
  readonly content: string | null
}

export type Read =
  | { readonly state: 'text'; readonly text: string; readonly hash: string; readonly seen: Seen }
  | { readonly state: 'missing' }
  | { readonly state: 'refused'; readonly why: string }

export type Put = 'written' | 'unchanged' | 'superseded'

/** Enough of a file to know that it was not touched since. */
export type Seen = `${number} ${number} ${number}`

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_WRONLY, O_CREAT, O_EXCL } = constants
/** Larger ones are kept without being looked at. */
const asideBytesMax = 64 * 1024 * 1024
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class WorkspaceFolder {
  readonly path: string
  readonly ownPath: string
  readonly #turns = new Map<string, Promise<unknown>>()

  private constructor(path: string) {
    this.path = path
    this.ownPath = join(path, '.hermod')
  }

  /** The folder itself may be a link, what lies in it may not. */
  static async open(path: string): Promise<WorkspaceFolder> {
    await mkdir(path, { recursive: true, mode: 0o700 })
    const real = await realpath(path)
    await closeToOthers(real)
    const folder = opened.get(real) ?? new WorkspaceFolder(real)
    opened.set(real, folder)
    await mkdir(folder.ownPath, { recursive: true, mode: 0o700 })
    await folder.assertThere()
    return folder
  }

  /** Undefined until somebody has put the first file there. */
  static async openExisting(path: string): Promise<WorkspaceFolder | undefined> {
    const own = await lstat(join(path, '.hermod')).catch(missing)
    return own === undefined ? undefined : WorkspaceFolder.open(path)
  }

  /** An unmounted disk looks like an empty folder; our folder is never empty. */
  async assertThere(): Promise<void> {
    const own = await lstat(this.ownPath).catch(() => undefined)
    if (own?.isDirectory()) return
    throw new FolderGone(`${this.path} holds no folder .hermod: is the disk mounted?`)
  }

  /** One at a time per file in this process; other processes are told apart by the manifest. */
  async inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name)
    const mine = (before ?? Promise.resolve()).then(work, work)
    const settled = mine.catch(() => {})
    this.#turns.set(name, settled)
    try {
      return await mine
    } finally {
      if (this.#turns.get(name) === settled) this.#turns.delete(name)
    }
  }

  async manifestOf(name: string): Promise<Manifest | undefined> {
    const text = await readFile(this.#manifestPath(name), {
      encoding: 'utf8',
      flag: O_RDONLY | O_NOFOLLOW,
    }).catch(missing)
    return readManifest(text)
  }

  manifestAgeMs(name: string): Promise<number> {
    return ageMsOf(this.#manifestPath(name))
  }

  async saveManifest(name: string, manifest: Manifest): Promise<void> {
    await rename(await this.#newFile(JSON.stringify(manifest)), this.#manifestPath(name))
  }

  /** Brings the file to the wanted content, once per event, even after an interruption. */
  put(name: string, next: FileContent): Promise<Put> {
    return this.inTurn(name, () => this.putNow(name, next))
  }

  /** For callers that already hold the file's turn. */
  async putNow(name: string, next: FileContent): Promise<Put> {
    const before = await this.manifestOf(name)
    if (before !== undefined && isApplied(before, next)) return 'superseded'
    const { content, ...rest } = next
    const had = before?.written ?? []
    const hash = content === null ? undefined : hashOf(content)
    const wanted = hash === undefined ? [] : [hash]
    // The scan records an outside edit that is based on the current database content.
    const same = had.join() === wanted.join()
    const taken = before?.taken ?? []
    if (same && (hash === undefined || (await this.#exists(name)))) {
      await this.saveManifest(name, { ...rest, written: wanted, taken })
      return 'unchanged'
    }
    const either = [...new Set([...had, ...wanted])]
    await this.saveManifest(name, { ...rest, written: either, taken })
    const text = content === null ? undefined : await this.#newFile(content)
    await this.#replace(name, text, (found) => had.includes(found) || found === hash)
    await this.saveManifest(name, { ...rest, written: wanted, taken: [] })
    return 'written'
  }

  /** Text of a regular file of ours, or why not. */
  async read(name: string, bytesMax: number): Promise<Read> {
    return readText(join(this.path, name), { bytesMax, namesMax: 1 })
  }

  /** After a batch: what was moved into place stays there when the power goes. */
  async sync(): Promise<void> {
    for (const path of [this.ownPath, this.path]) {
      const folder = await open(path, O_RDONLY)
      try {
        await folder.sync()
      } finally {
        await folder.close()
      }
    }
  }

  /**
   * The existing file is moved away first and examined then: a save that happens in between is
   * moved away too, so no text is lost. Unknown text is kept beside it as a conflict.
   */
  async #replace(name: string, temporary: string | undefined, isKnown: (hash: string) => boolean): Promise<void> {
    for (;;) {
      await this.#setAside(name, isKnown)
      if (temporary === undefined) return
      try {
        await link(temporary, join(this.path, name))
        return await unlink(temporary)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EEXIST') continue
        // File systems without hard links.
        if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error
        return await rename(temporary, join(this.path, name))
      }
    }
  }

  /** Moves the file into our own folder, then deletes it or gives it back as a conflict. */
  async #setAside(name: string, isKnown: (hash: string) => boolean): Promise<void> {
    const aside = join(this.ownPath, `${name}.aside`)
    await this.#judge(name, aside, isKnown)
    const moved = await rename(join(this.path, name), aside).then(() => true, missing)
    if (moved) await this.#judge(name, aside, isKnown)
  }

  /** Also of one that a crash left there. */
  async #judge(name: string, aside: string, isKnown: (hash: string) => boolean): Promise<void> {
    const found = await readText(aside, { bytesMax: asideBytesMax, namesMax: 2 })
    if (found.state === 'missing') return
    if (found.state === 'text' && isKnown(found.hash)) return await unlink(aside)
    const mark = found.state === 'text' ? found.hash : randomBytes(6).toString('hex')
    await rename(aside, join(this.path, conflictNameOf(name, mark)))
  }

  async #exists(name: string): Promise<boolean> {
    return (await lstat(join(this.path, name)).catch(missing)) !== undefined
  }

  #manifestPath(name: string): string {
    return join(this.ownPath, `${name}.json`)
  }

  /** Writes a new file with this text, synced to disk, under a temporary name. */
  async #newFile(text: string): Promise<string> {
    const path = join(this.ownPath, `${randomBytes(9).toString('base64url')}.new`)
    const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
      return path
    } catch (error) {
      await rm(path, { force: true })
      throw error
    } finally {
      await file.close()
    }
  }
}

/** One per path and process, so that its sink and its scan take turns. */
const opened = new Map<string, WorkspaceFolder>()

/** Drafts lie here. Whoever shares the folder with a group keeps doing so; a folder of somebody else is theirs to close. */
async function closeToOthers(path: string): Promise<void> {
  const { mode, uid } = await lstat(path)
  if ((mode & 0o007) !== 0 && uid === process.getuid?.()) await chmod(path, mode & 0o770)
}

export class FolderGone extends Error {
  override readonly name = 'FolderGone'
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ELOOP') return undefined
  throw error
}

/** A crash right after linking leaves two names; any other second link is suspicious. */
async function readText(
  path: string,
  { bytesMax, namesMax }: { readonly bytesMax: number; readonly namesMax: number },
): Promise<Read> {
  // Not through a link, and not waiting for whoever writes into a pipe.
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: NodeJS.ErrnoException) => error)
  if (file instanceof Error) return notOpened(file)
  try {
    const stat = await file.stat()
    const { size, nlink } = stat
    if (!stat.isFile()) return { state: 'refused', why: 'is not a regular file' }
    if (nlink > namesMax) return { state: 'refused', why: 'has a second name (hard link)' }
    if (size > bytesMax) return { state: 'refused', why: `is larger than ${bytesMax} bytes` }
    return textOf(await file.readFile(), seenOf(stat))
  } finally {
    await file.close()
  }
}

/** Zero for what is not there. */
export async function ageMsOf(path: string): Promise<number> {
  const stat = await lstat(path).catch(missing)
  return stat === undefined ? 0 : Date.now() - stat.mtimeMs
}

export function seenOf({ mtimeMs, size, ino }: Stats): Seen {
  return `${mtimeMs} ${size} ${ino}`
}

function notOpened(error: NodeJS.ErrnoException): Read {
  if (error.code === 'ENOENT') return { state: 'missing' }
  if (error.code === 'ELOOP') return { state: 'refused', why: 'is a symbolic link' }
  if (error.code === 'EACCES') return { state: 'refused', why: 'may not be read' }
  if (error.code === 'ENXIO') return { state: 'refused', why: 'is not a regular file' }
  throw error
}

function textOf(bytes: Buffer, seen: Seen): Read {
  try {
    const text = utf8.decode(bytes)
    if (text.includes('\0')) return { state: 'refused', why: 'holds NUL characters' }
    return { state: 'text', text, hash: hashOf(text), seen }
  } catch {
    return { state: 'refused', why: 'is not UTF-8' }
  }
}
