// Where the run keeps its temporary files: in memory, where there is room. Files of databases are
// many and small: a new database takes 20 ms there, and 60 to 290 ms on a disk that others use too.

import { readFileSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'

const folder = '/dev/shm'
/** A run takes a fourth of it at most. */
const bytesMin = 2 * 1024 ** 3

/** TMPDIR for this process and those it starts, unless it is set. */
export function useMemoryFolder(): void {
  if (process.env.TMPDIR === undefined && hasRoom()) process.env.TMPDIR = folder
}

function hasRoom(): boolean {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
    const [, , type, options] = mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ') ?? []
    const { bavail, bsize } = statfsSync(folder)
    // Tests also start programs from there.
    const fits = type === 'tmpfs' && !options?.split(',').includes('noexec')
    return fits && Math.min(bavail * bsize, freemem()) >= bytesMin
  } catch {
    return false
  }
}
