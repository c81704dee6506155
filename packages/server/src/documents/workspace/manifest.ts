/** What we know of a file we keep: written beside it in `.hermod`, before and after each change. */

export interface Manifest {
  readonly documentId: string
  readonly providerFileId: string
  /** Of the last event applied to the file; an older one changes nothing. */
  readonly position: string
  readonly version: string
  /** Hashes of content that we wrote: one, two while the file is being replaced, none after a deletion. */
  readonly written: readonly string[]
  /** Hashes of outside edits on their way into the database. */
  readonly taken: readonly string[]
}

/** A file that cannot be read is no manifest: then the text beside it is not ours. */
export function readManifest(text: string | undefined): Manifest | undefined {
  if (text === undefined) return undefined
  try {
    const given = JSON.parse(text)
    return isManifest(given) ? given : undefined
  } catch {
    return undefined
  }
}

function isManifest(given: unknown): given is Manifest {
  if (typeof given !== 'object' || given === null) return false
  const { documentId, providerFileId, position, version, written, taken } = given as Manifest
  const texts = [documentId, providerFileId].every((text) => typeof text === 'string')
  const numbers = [position, version].every((text) => /^\d{1,19}$/.test(String(text)))
  const isHashes = (list: unknown) => Array.isArray(list) && list.every((hash) => /^[0-9a-f]{64}$/.test(String(hash)))
  return texts && numbers && isHashes(written) && isHashes(taken)
}

/** Does the file already show this event, or a newer one? */
export function isApplied(manifest: Manifest, next: Pick<Manifest, 'documentId' | 'position' | 'version'>): boolean {
  const [had, has] = [BigInt(manifest.position), BigInt(next.position)]
  if (had > has) return true
  // Rows are read when events are delivered: a slow reader may come with an older row.
  return manifest.documentId === next.documentId && BigInt(manifest.version) > BigInt(next.version)
}
