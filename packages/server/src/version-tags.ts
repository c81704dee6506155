/** ETag and If-Match: whoever changes a thing says which version they saw. */
import { Problem } from './problems.ts'

const versionMax = 2n ** 63n - 1n

export function etagOf(version: string | number | bigint): string {
  return `"${version}"`
}

/** The version the caller saw; undefined = any (`*`). Missing is 428. */
export function versionSeen(ifMatch: string | undefined): string | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '') {
    throw new Problem(
      'HMD_VERSION_NEEDED',
      'Send If-Match with the ETag you read, so that nobody else’s change is overwritten.',
    )
  }
  if (ifMatch.trim() === '*') return undefined
  const [, version] = /^"(\d{1,19})"$/.exec(ifMatch.trim()) ?? []
  // A tag in another format, or beyond what a version can be, matches nothing.
  return version === undefined || BigInt(version) > versionMax ? '-1' : version
}

/** Throws 412 with the current version unless the caller saw it. */
export function assertVersion(seen: string | undefined, current: string): void {
  if (seen === undefined || seen === current) return
  throw new Problem(
    'HMD_VERSION_STALE',
    `It is at version ${current} now. Read it again, then repeat your change with If-Match: ${etagOf(current)}.`,
    { facts: { currentVersion: current }, headers: { etag: etagOf(current) } },
  )
}
