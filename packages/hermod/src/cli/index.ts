/** What the server's commands share with the engine's: `hermod/cli`. */
export { didYouMean, nearest } from '../nearest.ts'
export {
  type Command,
  type CommandOption,
  type Context,
  flagOf,
  numberOf,
  textOf,
  usage,
} from './command.ts'
export { databaseUrl, maskUrl } from './connect.ts'
export { type ProgressBar, progressBar } from './progress-bar.ts'
export type { OpenOutbox, Purpose, ServerPart } from './server-part.ts'
export { listenForSignals, type Signals } from './signals.ts'
export { type Cell, Terminal, type TerminalOptions, toJson } from './terminal.ts'
