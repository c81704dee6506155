/**
 * Every error a user can see: a code, one sentence, and what to do next. `docs/reference/errors.md`
 * lists exactly these codes; a test compares the two.
 */
import { catalogue } from './error-catalogue.ts'

export { catalogue }

export type HermodErrorCode = keyof typeof catalogue

export interface HermodErrorOptions {
  /** The field that is wrong, as the caller wrote it: `events[17].payload`. */
  readonly field?: string | undefined
  /** Facts for programs: bounds, sizes, paths. Never a secret, never a payload. */
  readonly details?: Record<string, unknown> | undefined
  readonly cause?: unknown
  /** Replaces the catalogue's advice if the place of the error knows better. */
  readonly fix?: string | undefined
}

export class HermodError extends Error {
  override readonly name = 'HermodError'
  readonly code: HermodErrorCode
  // `declare`: an error without them has no such properties.
  declare readonly field?: string
  readonly fix: string
  declare readonly details?: Record<string, unknown>

  constructor(code: HermodErrorCode, message: string, options: HermodErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.fix = options.fix ?? catalogue[code].fix
    if (options.field !== undefined) this.field = options.field
    if (options.details !== undefined) this.details = options.details
  }

  /** The part that may leave the process: no stack, no cause. */
  toJSON(): Record<string, unknown> {
    return {
      code: this.code,
      message: this.message,
      ...(this.field !== undefined && { field: this.field }),
      fix: this.fix,
      ...(this.details !== undefined && { details: this.details }),
    }
  }
}

export function isHermodErrorCode(code: string): code is HermodErrorCode {
  return Object.hasOwn(catalogue, code)
}

/** Wrappers met in the wild (drizzle, typeorm, prisma) nest the driver's error at most this deep. */
const causesMax = 5
const SQLSTATE_OURS = /^HM[0-9A-Z]{3}$/
const MESSAGE_OURS = /^(HMD_[A-Z_]+): ([\s\S]*)$/

/**
 * Our SQL functions raise with SQLSTATE class `HM` and `HMD_CODE: text`. Such an error, also inside
 * a client library's wrapper, becomes a HermodError with the original as its cause; every other
 * value comes back unchanged.
 */
export function fromSqlState(error: unknown): unknown {
  let link = error
  for (let depth = 0; depth < causesMax && isRecord(link); depth++) {
    const found = readOurs(link)
    if (found !== undefined) {
      const { code, text, sqlState, detail, hint } = found
      const details = { sqlState, ...(detail !== undefined && { detail }) }
      return new HermodError(code, text, { cause: error, details, fix: hint })
    }
    link = link.cause
  }
  return error
}

interface OurSqlError {
  code: HermodErrorCode
  text: string
  sqlState: string
  detail: string | undefined
  hint: string | undefined
}

function readOurs(error: Record<string, unknown>): OurSqlError | undefined {
  const { code: sqlState, message } = error
  if (typeof sqlState !== 'string' || typeof message !== 'string') return undefined
  if (!SQLSTATE_OURS.test(sqlState)) return undefined
  const [, code, text] = MESSAGE_OURS.exec(message) ?? []
  if (code === undefined || text === undefined || !isHermodErrorCode(code)) return undefined
  return { code, text, sqlState, detail: textOf(error.detail), hint: textOf(error.hint) }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
