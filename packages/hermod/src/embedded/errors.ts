// The errors the embedded PostgreSQL starter can raise. Each has a stable code, a sentence and
// what to do next, because they are often the first thing a newcomer sees.

export type EmbeddedErrorCode =
  | 'HMD_EMBEDDED_MISSING'
  | 'HMD_EMBEDDED_PLATFORM'
  | 'HMD_EMBEDDED_ROOT'
  | 'HMD_EMBEDDED_INITDB'
  | 'HMD_EMBEDDED_START'
  | 'HMD_EMBEDDED_LOOPBACK'
  | 'HMD_EMBEDDED_IN_USE'
  | 'HMD_EMBEDDED_VERSION'
  | 'HMD_EMBEDDED_RUNNING'
  | 'HMD_EMBEDDED_STOP'

export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError'
  readonly code: EmbeddedErrorCode

  constructor(code: EmbeddedErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options)
    this.code = code
  }
}

export function errnoOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
