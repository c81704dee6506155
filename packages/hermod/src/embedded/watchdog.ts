// A tiny process beside a temporary cluster that outlives us by a moment: when we are gone, for
// whatever reason (`kill -9` included), it ends the server and deletes the data directory.

import { type ChildProcess, spawn } from 'node:child_process'

// Given as text, because the sources (.ts) cannot be run by Node 20 and tests run on sources.
// The pid comes from the server's own file: a number we remembered could be somebody else's.
const program = `
const fs = require('node:fs')
const dir = process.argv[1]
const lock = dir + '/postmaster.pid'
process.stdin.resume().on('end', () => {
  try { process.kill(Number.parseInt(fs.readFileSync(lock, 'utf8'), 10), 'SIGQUIT') } catch {}
  const until = Date.now() + 10000
  const timer = setInterval(() => {
    if (fs.existsSync(lock) && Date.now() < until) return
    clearInterval(timer)
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  }, 20)
})`

export type Watchdog = { dismiss(): void }

export function watchOver(dataDir: string): Watchdog {
  const child = spawn(process.execPath, ['-e', program, dataDir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: process.platform === 'win32' ? undefined : '/',
    detached: true,
  })
  // Neither the process nor its pipe may keep us alive; the pipe closes when we end.
  child.unref()
  unrefPipe(child)
  child.on('error', () => {})
  return { dismiss: () => void child.kill('SIGKILL') }
}

function unrefPipe({ stdin }: ChildProcess): void {
  stdin?.on('error', () => {})
  if (stdin && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
}
