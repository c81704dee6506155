// The part of smtp-server that the mail catcher uses; the package ships no types.
declare module 'smtp-server' {
  import type { EventEmitter } from 'node:events'
  import type { Server } from 'node:net'
  import type { Readable } from 'node:stream'

  interface Address {
    readonly address: string
  }
  interface Session {
    readonly envelope: { readonly mailFrom: Address | false; readonly rcptTo: readonly Address[] }
  }
  interface Options {
    readonly banner?: string
    readonly authOptional?: boolean
    readonly disabledCommands?: readonly string[]
    readonly disableReverseLookup?: boolean
    readonly logger?: boolean
    readonly size?: number
    onAuth?(auth: unknown, session: Session, done: (error: Error | null, answer?: { user: string }) => void): void
    onData?(stream: Readable, session: Session, done: (error?: Error | null) => void): void
  }
  export class SMTPServer extends EventEmitter {
    constructor(options: Options)
    listen(port: number, host: string): Server
    close(done: () => void): void
  }
}
