/**
 * Starts stages one after the other and closes them in the opposite order. If it is told to close while
 * starting, it finishes the current stage and starts no other.
 */
export class Stages {
  readonly #tell: (says: string) => void
  readonly #closers: (() => Promise<unknown>)[] = []
  #current: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  /** `tell` hears what takes longer than a second. */
  constructor(tell: (says: string) => void) {
    this.#tell = tell
  }

  async start<T>(says: string, work: () => Promise<T>, close?: (it: T) => Promise<unknown>): Promise<T> {
    if (this.#closing !== undefined) throw new Error('stopped while starting')
    const startedMs = performance.now()
    const running = work().then((it) => {
      if (close !== undefined) this.#closers.push(() => close(it))
      return it
    })
    this.#current = running.catch(() => {})
    const it = await running
    const seconds = (performance.now() - startedMs) / 1_000
    if (seconds > 1) this.#tell(`${says} … ${seconds.toFixed(1)} s`)
    return it
  }

  get closing(): boolean {
    return this.#closing !== undefined
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  async #closeAll(): Promise<void> {
    await this.#current
    const failed: unknown[] = []
    for (const closer of this.#closers.reverse()) {
      // If one stage fails to close, the others are closed anyway.
      await closer().catch((error: unknown) => failed.push(error))
    }
    if (failed.length > 0) throw failed[0]
  }
}
