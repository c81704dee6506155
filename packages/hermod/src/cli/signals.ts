/** Ctrl-C and SIGTERM for commands that stay: the first ends politely, the second at once. */
import type { Terminal } from './terminal.ts'

export interface Signals {
  /** Resolves at the first signal. */
  readonly first: Promise<NodeJS.Signals>
  end(): void
}

export function listenForSignals(terminal: Pick<Terminal, 'say'>, leaving: string): Signals {
  let told: (signal: NodeJS.Signals) => void = () => {}
  const first = new Promise<NodeJS.Signals>((resolve) => {
    told = resolve
  })
  let count = 0
  const hear = (signal: NodeJS.Signals) => {
    if (++count === 1) return told(signal)
    terminal.say(leaving)
    process.exit(130)
  }
  process.on('SIGINT', hear).on('SIGTERM', hear)
  const end = () => {
    process.removeListener('SIGINT', hear).removeListener('SIGTERM', hear)
  }
  return { first, end }
}
