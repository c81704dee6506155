/**
 * Looks for files that somebody changed outside: what is neither what we wrote nor what the database
 * holds is recorded as a change of content. Where both moved on, the database wins and the text of
 * the file is kept beside it.
 */
import { lstat, opendir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Actor } from '../../actor.ts'
import { permissionsOf } from '../../permissions.ts'
import { type Platform, type Tx, transaction } from '../../platform.ts'
import { Problem } from '../../problems.ts'
import { takeContent } from '../commands.ts'
import { openDocument } from '../open.ts'
import { contentCharsMax } from '../schemas.ts'
import { isMarkdown, mayBeDocument } from './file-names.ts'
import { ageMsOf, type Read, type Seen, seenOf, type WorkspaceFolder } from './folder.ts'
import type { Manifest } from './manifest.ts'
import { localContents } from './sink.ts'

/**
 * recorded: an outside edit is in the database now · conflict: the database had moved on, the text is
 * kept beside the file · restored: the file was gone · unknown: no document has this file · refused:
 * cannot be taken, see `why` · later: it is being changed right now · unchanged
 */
export const findings = ['recorded', 'conflict', 'restored', 'unknown', 'refused', 'later', 'unchanged'] as const
export type FindingKind = (typeof findings)[number]

export interface Finding {
  readonly file: string
  readonly kind: FindingKind
  readonly documentId?: string
  readonly why?: string
}

export interface ScanReport {
  readonly counts: Readonly<Record<FindingKind, number>>
  /** Everything but `unchanged`, at most 1,000 of them. */
  readonly found: readonly Finding[]
}

export interface ScanOptions {
  /** Only these files; the whole folder when left out. */
  readonly names?: readonly string[]
  /** A file that was written a moment ago may not be complete. */
  readonly settleMs?: number
  /** What earlier scans have seen, so that untouched files are not read again. */
  readonly seen?: Map<string, Seen>
}

const foundMax = 1_000
const leftoverMs = 60_000
const tombstoneMs = 7 * 86_400_000

export const scanActor: Actor = Object.freeze({
  personId: null,
  identity: 'system:local-workspace',
  role: 'editor' as const,
  permissions: permissionsOf('editor'),
  endpoint: 'scan local workspace',
  userAgent: null,
  ip: null,
  requestId: 'scan',
})

export async function scanWorkspace(
  platform: Platform,
  folder: WorkspaceFolder,
  options: ScanOptions = {},
): Promise<ScanReport> {
  await folder.assertThere()
  const counts = Object.fromEntries(findings.map((kind) => [kind, 0])) as Record<FindingKind, number>
  const found: Finding[] = []
  const note = (finding: Finding) => {
    counts[finding.kind]++
    if (finding.kind !== 'unchanged' && found.length < foundMax) found.push(finding)
  }
  const names = options.names ?? namesIn(folder)
  for await (const name of names) note(await examine(platform, folder, name, options))
  if (options.names === undefined) await keepHouse(platform, folder, note)
  return { counts, found }
}

async function* namesIn(folder: WorkspaceFolder): AsyncGenerator<string> {
  for await (const { name } of await opendir(folder.path)) if (isMarkdown(name)) yield name
}

/** One file, while holding its turn: the sink does not replace it meanwhile. */
export function examine(
  platform: Platform,
  folder: WorkspaceFolder,
  file: string,
  { settleMs = 500, seen }: ScanOptions = {},
): Promise<Finding> {
  return folder.inTurn(file, async () => {
    const touched = await lstat(join(folder.path, file)).catch(() => undefined)
    if (touched === undefined || seen?.get(file) === seenOf(touched)) {
      return { file, kind: 'unchanged' }
    }
    const looked = await look(folder, file)
    if ('kind' in looked) {
      if (looked.kind === 'unchanged') seen?.set(file, seenOf(touched))
      return looked
    }
    const { documentId } = looked.manifest
    const restless = Math.abs(Date.now() - touched.mtimeMs) < settleMs
    if (restless || (await isBeingReplaced(folder, looked))) {
      return { file, kind: 'later', documentId }
    }
    return { file, documentId, ...(await decide(platform, folder, looked)) }
  })
}

interface Edited {
  readonly file: string
  readonly manifest: Manifest
  readonly read: Extract<Read, { state: 'text' }>
}

/** Text that is not ours, or what there is to say about the file. */
async function look(folder: WorkspaceFolder, file: string): Promise<Finding | Edited> {
  const manifest = mayBeDocument(file) ? await folder.manifestOf(file) : undefined
  if (manifest === undefined || manifest.written.length === 0) return { file, kind: 'unknown' }
  const { documentId } = manifest
  const refused = (why: string): Finding => ({ file, kind: 'refused', why, documentId })
  const read = await folder.read(file, contentCharsMax * 4)
  if (read.state === 'missing') return { file, kind: 'later', documentId }
  if (read.state === 'refused') return refused(read.why)
  if (read.text.length > contentCharsMax) {
    return refused(`is longer than ${contentCharsMax} characters`)
  }
  const ours = manifest.written.includes(read.hash)
  return ours ? { file, kind: 'unchanged', documentId } : { file, manifest, read }
}

/** Another process is working on it; after a minute that process counts as dead. */
async function isBeingReplaced(folder: WorkspaceFolder, { file, manifest }: Edited): Promise<boolean> {
  const now = await folder.manifestOf(file)
  if (JSON.stringify(now) !== JSON.stringify(manifest)) return true
  return manifest.written.length > 1 && (await folder.manifestAgeMs(file)) < leftoverMs
}

type Decided = Pick<Finding, 'kind' | 'why'>

/**
 * Under the lock of the row. Afterwards the manifest has the version of the row: the sink may have read an older one, and
 * must not put its text over this one.
 */
async function decide(platform: Platform, folder: WorkspaceFolder, edited: Edited): Promise<Decided> {
  const { file, manifest, read } = edited
  try {
    const judged = await transaction(platform, (tx) => judge(platform, tx, folder, edited))
    if (judged === 'moved on') return { kind: await keepBoth(platform, folder, edited) }
    if (judged === 'unknown') return { kind: judged, why: 'its document was deleted' }
    const { kind, version } = judged
    await folder.saveManifest(file, { ...manifest, version, written: [read.hash], taken: [] })
    return { kind }
  } catch (error) {
    if (error instanceof Problem) return { kind: 'refused', why: error.message }
    throw error
  }
}

type Judged = 'moved on' | 'unknown' | { readonly kind: 'recorded' | 'unchanged'; readonly version: string }

/**
 * The hash of the edit is noted before the commit: should we die right after it, the next edit of this file is still
 * known to follow this one.
 */
async function judge(platform: Platform, tx: Tx, folder: WorkspaceFolder, edited: Edited): Promise<Judged> {
  const { file, manifest, read } = edited
  const { documentId, written, taken } = manifest
  // Two hashes: which of them somebody edited cannot be known, so nothing is built on them.
  const bases = written.length > 1 ? [] : [...written, ...taken]
  const opened = await openDocument(tx, scanActor, documentId)
  if (opened === undefined) return 'unknown'
  const { contentHash, version } = opened.document
  if (contentHash === read.hash) return { kind: 'unchanged', version }
  if (!bases.includes(contentHash)) return 'moved on'
  await folder.saveManifest(file, { ...manifest, taken: [...new Set([...taken, read.hash])] })
  const saved = await takeContent(platform, tx, scanActor, opened, read.text)
  return { kind: 'recorded', version: saved.version }
}

/** The database's text goes into the file; `put` keeps the other beside it. */
async function keepBoth(platform: Platform, folder: WorkspaceFolder, { file, manifest }: Edited): Promise<FindingKind> {
  const { documentId, position } = manifest
  const current = (await localContents(platform.pool, [documentId])).get(documentId)
  if (!current) return 'later'
  await folder.putNow(file, { ...current, position })
  return 'conflict'
}

/** Files that are gone come back; what crashes left behind goes. */
async function keepHouse(platform: Platform, folder: WorkspaceFolder, note: (finding: Finding) => void): Promise<void> {
  for await (const { name } of await opendir(folder.ownPath)) {
    const path = join(folder.ownPath, name)
    if (name.endsWith('.json')) {
      const finding = await folder.inTurn(name.slice(0, -5), () => restore(platform, folder, name))
      if (finding !== undefined) note(finding)
    } else if (name.endsWith('.new') && (await ageMsOf(path)) > leftoverMs) {
      await rm(path, { force: true })
    }
  }
}

async function restore(
  platform: Platform,
  folder: WorkspaceFolder,
  manifestName: string,
): Promise<Finding | undefined> {
  const file = manifestName.slice(0, -'.json'.length)
  if (await lstat(join(folder.path, file)).catch(() => undefined)) return undefined
  const manifest = await folder.manifestOf(file)
  if (manifest === undefined || manifest.written.length === 0) {
    const old = (await folder.manifestAgeMs(file)) > tombstoneMs
    if (old) await rm(join(folder.ownPath, manifestName), { force: true })
    return undefined
  }
  const { documentId, position } = manifest
  const current = (await localContents(platform.pool, [documentId])).get(documentId)
  if (!current || current.content === null) return undefined
  await folder.putNow(file, { ...current, position })
  return { file, kind: 'restored', documentId }
}
