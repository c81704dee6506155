// Deals with what a killed process left in a data directory it kept: a server still running, or a
// stale pid file. A directory that a living process uses is never touched.

import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { EmbeddedError } from './errors.ts'
import { isAlive, startedAt, worksIn } from './process-table.ts'

export async function recordOwner(dataDir: string): Promise<void> {
  await writeFile(join(dataDir, 'hermod.owner'), `${process.pid} ${startedAt(process.pid)}\n`)
}

/** After this no server runs in `dataDir` and no pid file is in the way. */
export async function clearLeftover(dataDir: string): Promise<void> {
  const pid = await postmasterPid(dataDir)
  if (pid === undefined) return
  if (isAlive(pid) && worksIn(pid, dataDir) !== false) await endServer(dataDir, pid)
  // The pid may belong to another program by now, and PostgreSQL would refuse to start.
  else await rm(join(dataDir, 'postmaster.pid'), { force: true })
}

async function postmasterPid(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  return pid > 0 ? pid : undefined
}

async function endServer(dataDir: string, pid: number): Promise<void> {
  const owner = await livingOwner(dataDir)
  if (owner !== undefined) {
    throw new EmbeddedError(
      'HMD_EMBEDDED_IN_USE',
      `Process ${owner} is using the database in ${dataDir}. Stop it or choose another folder.`,
    )
  }
  process.kill(pid, 'SIGINT')
  await untilGone(pid, dataDir)
}

async function livingOwner(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'hermod.owner'), 'utf8').catch(() => '')
  const [pid = '', started = ''] = text.trim().split(' ')
  const owner = Number(pid)
  return owner > 0 && isAlive(owner) && startedAt(owner) === started ? owner : undefined
}

async function untilGone(pid: number, dataDir: string): Promise<void> {
  const deadline = Date.now() + 30_000
  while (isAlive(pid)) {
    if (Date.now() > deadline) {
      throw new EmbeddedError(
        'HMD_EMBEDDED_STOP',
        `The server left running in ${dataDir} (pid ${pid}) did not stop within 30 s.`,
      )
    }
    await pause(20)
  }
}
