// One PostgreSQL server process on one data directory: starts it, waits until it accepts
// connections, stops it. It knows nothing about how the directory was made.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { logSize, logTail, spawnOptions } from './data-directory.ts'
import { EmbeddedError } from './errors.ts'
import { endAtExit, forget, keep, type Running } from './exit.ts'
import { clearLeftover, recordOwner } from './leftover.ts'
import { acceptsConnections } from './probe.ts'

export type StopMode = 'smart' | 'fast' | 'immediate'

export type ServerOptions = {
  readonly binaries: Binaries
  readonly account: Account | undefined
  readonly dataDir: string
  readonly ephemeral: boolean
  readonly startMs: number
}

const stopSignals = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export class Server {
  readonly #options: ServerOptions
  #child: ChildProcess | undefined
  readonly #running: Running

  constructor(options: ServerOptions) {
    this.#options = options
    this.#running = { pid: undefined, dataDir: options.dataDir, ephemeral: options.ephemeral }
    endAtExit(this.#running)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(port: number): Promise<void> {
    if (this.#child) return
    await clearLeftover(this.#options.dataDir)
    await recordOwner(this.#options.dataDir)
    const deadline = Date.now() + this.#options.startMs
    for (;;) {
      const logFrom = await logSize(this.#options.dataDir)
      if (await this.#attempt(port, deadline)) return
      const tail = await logTail(this.#options.dataDir, logFrom)
      // Backends of a killed server need a moment to notice; only then is its memory free.
      const transient = /shared memory block .* still in use/.test(tail)
      if (!transient || Date.now() > deadline) throw startError(this.#options.dataDir, port, tail)
      await pause(50)
    }
  }

  async #attempt(port: number, deadline: number): Promise<boolean> {
    const child = await this.#spawn(port)
    const ended = () => child.exitCode !== null || child.signalCode !== null
    while (!ended() && Date.now() < deadline) {
      if ((await acceptsConnections(port)) && (await this.#holdsDirectory(child))) return true
      await pause(10)
    }
    await this.stop('immediate')
    return false
  }

  /** The port may have answered because another server has it, while ours is failing to bind. */
  async #holdsDirectory(child: ChildProcess): Promise<boolean> {
    const file = join(this.#options.dataDir, 'postmaster.pid')
    const text = await readFile(file, 'utf8').catch(() => '')
    // The eighth line says "starting", "ready" or "standby"; it comes after the port was bound.
    const [pid, , , , , , , state = ''] = text.split('\n')
    return Number(pid) === child.pid && /ready|standby/.test(state)
  }

  async #spawn(port: number): Promise<ChildProcess> {
    const { binaries, account, dataDir } = this.#options
    const log = await open(join(dataDir, 'postgres.log'), 'a')
    const child = spawn(binaries.postgres, ['-D', dataDir, '-p', String(port)], {
      ...spawnOptions(account),
      stdio: ['ignore', log.fd, log.fd],
      // Its own process group: Ctrl-C reaches us, and we decide when the server ends.
      detached: true,
    })
    // Heard from the first moment: a server that refuses its settings may end before the next line.
    this.#child = child
    this.#running.pid = child.pid
    child.once('exit', () => this.#ended(child))
    child.once('error', () => this.#ended(child))
    await once(child, 'spawn').finally(() => log.close())
    child.unref()
    return child
  }

  #ended(child: ChildProcess): void {
    if (this.#child !== child) return
    this.#running.pid = undefined
    this.#child = undefined
  }

  keep(): void {
    keep(this.#running)
  }

  /** Ends the server and hands the data directory over to the caller. */
  async release(): Promise<void> {
    await this.stop('immediate')
    forget(this.#running)
  }

  async stop(mode: StopMode, limitMs = 30_000): Promise<void> {
    const child = this.#child
    if (!child) return
    child.ref()
    const exited = once(child, 'exit')
    await this.#signal(child, mode)
    const done = await Promise.race([exited.then(() => true), pause(limitMs, false, { ref: false })])
    if (done) return
    throw new EmbeddedError(
      'HMD_EMBEDDED_STOP',
      `The server in ${this.#options.dataDir} did not stop (${mode}) within ${limitMs} ms. ` +
        "Close its clients, or stop with mode 'fast' or 'immediate'.",
    )
  }

  async #signal(child: ChildProcess, mode: StopMode): Promise<void> {
    if (process.platform !== 'win32') {
      child.kill(stopSignals[mode])
      return
    }
    // Windows has no signals; pg_ctl speaks to the server through a named pipe.
    const args = ['stop', '-D', this.#options.dataDir, '-m', mode, '-W']
    await once(spawn(this.#options.binaries.pgCtl, args, { stdio: 'ignore' }), 'exit')
  }
}

function startError(dataDir: string, port: number, tail: string): EmbeddedError {
  return new EmbeddedError(
    'HMD_EMBEDDED_START',
    `PostgreSQL did not start on port ${port} in ${dataDir}. Its log ends with:\n${tail}`,
  )
}
