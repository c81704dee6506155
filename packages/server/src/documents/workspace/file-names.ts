/**
 * Names of files in the workspace folder. Whatever a provider file id is, its file lies directly in
 * the folder, on any file system, and two ids never share one.
 */
import { createHash } from 'node:crypto'

/** Lower case only: some file systems do not tell A from a. No dots: they begin our own endings. */
const PLAIN = /^[a-z0-9][a-z0-9_-]{0,99}$/
/** Names Windows keeps for devices. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/
const ENDING = '.md'

/** `6f1c….md`; an id that is no safe name becomes a readable part and a hash: `q3-plan~9f86d081884c7d65.md`. */
export function fileNameOf(providerFileId: string): string {
  if (PLAIN.test(providerFileId) && !DEVICE.test(providerFileId)) return providerFileId + ENDING
  const readable = providerFileId
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40)
  const hash = createHash('sha256').update(providerFileId).digest('hex').slice(0, 32)
  return `${readable}~${hash}${ENDING}`
}

/** Where the text of a file goes that the database did not take. */
export function conflictNameOf(fileName: string, hash: string): string {
  return `${fileName.slice(0, -ENDING.length)}.conflict-${hash.slice(0, 12)}${ENDING}`
}

const OURS = /^[a-z0-9_-]*~?[a-z0-9_-]+\.md$/

/** What a scan looks at: files named as we name them, not conflicts, not what editors leave around. */
export function mayBeDocument(fileName: string): boolean {
  return fileName.length <= 110 && OURS.test(fileName)
}

export function isMarkdown(fileName: string): boolean {
  return /^[^.].*\.md$/i.test(fileName) && !/\.conflict-[0-9a-f]{12}\.md$/.test(fileName)
}
