// What is known about operating system processes we did not necessarily start: whether a pid is
// alive and since when. A pid alone is not an identity, since the system uses numbers again.

import { readFileSync, readlinkSync } from 'node:fs'

/** A process that ended but was not yet collected by its parent counts as gone. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return statusFields(pid)[0] !== 'Z'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** When the process started, in the kernel's ticks; empty where the system does not tell. */
export function startedAt(pid: number): string {
  return statusFields(pid)[19] ?? ''
}

/** What follows the program's name (which may hold anything) in the kernel's status line. */
function statusFields(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** Whether the process is a server working in `dataDir`; undefined where that cannot be seen. */
export function worksIn(pid: number, dataDir: string): boolean | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === dataDir
  } catch {
    return undefined
  }
}
