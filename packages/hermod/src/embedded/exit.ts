// Makes sure no PostgreSQL server outlives the process that started it: every running server is
// ended when the process exits, on Ctrl-C and on SIGTERM; temporary ones also after `kill -9`
// (watchdog.ts). A kept cluster after `kill -9` is ended by the next start (leftover.ts).

import { type Watchdog, watchOver } from './watchdog.ts'

export type Running = {
  /** Undefined while the server is stopped. */
  pid: number | undefined
  readonly dataDir: string
  /** Delete the data as well. */
  ephemeral: boolean
}

const running = new Map<Running, Watchdog | undefined>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
let installed = false

export function endAtExit(server: Running): void {
  if (running.has(server)) return
  running.set(server, server.ephemeral ? watchOver(server.dataDir) : undefined)
  if (installed) return
  installed = true
  process.on('exit', endAll)
  for (const signal of signals) process.on(signal, onSignal)
}

/** From now on the caller takes care of the directory. */
export function forget(server: Running): void {
  running.get(server)?.dismiss()
  running.delete(server)
}

/** Still ended at exit, but no longer deleted. */
export function keep(server: Running): void {
  if (!running.has(server)) return
  running.get(server)?.dismiss()
  running.set(server, undefined)
  server.ephemeral = false
}

function onSignal(signal: NodeJS.Signals): void {
  // A program with its own handler stops its workers first and exits then; do not cut it off.
  if (process.listeners(signal).length > 1) return
  endAll()
  process.off(signal, onSignal)
  process.kill(process.pid, signal)
}

function endAll(): void {
  for (const { pid, ephemeral } of running.keys()) {
    try {
      if (pid !== undefined) process.kill(pid, ephemeral ? 'SIGQUIT' : 'SIGINT')
    } catch {
      // It ended by itself.
    }
  }
}
