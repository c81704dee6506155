/**
 * Turns a payload into JSON text, or says exactly where it cannot: what JSON would silently drop or change,
 * and what PostgreSQL cannot store, is refused with its path.
 */
import { HermodError } from './errors.ts'

export const payloadBytesMax = 262_144
/** Above this emit warns (HMD_PAYLOAD_LARGE) and still writes. */
export const payloadBytesWarn = 65_536
export const payloadDepthMax = 64
/** Above this size the walk stops: shared references can expand to any size. */
const sizeGiveUp = 4 * payloadBytesMax

export interface PayloadText {
  readonly text: string
  readonly bytes: number
}

/** `where` names the payload in errors: `payload`, `events[17].payload`. */
export function payloadToText(payload: unknown, where: string): PayloadText {
  const problem = walk(payload, 0, { size: 0 })
  if (problem !== undefined) throw refusal(problem, where)
  const text = stringify(payload, where)
  // JSON.stringify escapes NUL and lone surrogates, so text without `\u` cannot hold either.
  const unstorable = text.includes('\\u') ? findUnstorable(JSON.parse(text), '') : undefined
  if (unstorable !== undefined) throw refusal(unstorable, where)
  const bytes = Buffer.byteLength(text)
  if (bytes > payloadBytesMax) throw tooLarge(where, bytes)
  return { text, bytes }
}

/** What makes a text impossible to store in PostgreSQL, or undefined. */
export function unstorableText(text: string): string | undefined {
  if (text.includes('\0')) return String.raw`holds \u0000, which PostgreSQL cannot store`
  return /\p{Surrogate}/u.test(text) ? 'holds a lone surrogate, which is not Unicode' : undefined
}

/** The same for an id or a key, which workers read in lists separated by U+001E and U+001F. */
export function unlistableText(text: string): string | undefined {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x1e || code === 0x1f) return 'holds U+001E or U+001F, which separate records'
  }
  return unstorableText(text)
}

interface Problem {
  kind: 'value' | 'depth' | 'size'
  path: string
  says: string
  /** kind `depth`: the containers from the outermost in, with the step each was left by. */
  trail: [container: object, step: string][]
  cause?: unknown
}

/** `size` is a lower bound of the JSON bytes seen so far. */
interface Walk {
  size: number
}

/**
 * One pass without allocation as long as there is no problem: the path is built only on the way back from
 * one. A cycle needs no check of its own: it always reaches the depth limit.
 */
function walk(value: unknown, depth: number, state: Walk): Problem | undefined {
  switch (typeof value) {
    case 'string':
      state.size += value.length
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : bad(`is ${value}, which JSON turns into null`)
    case 'boolean':
      return undefined
    case 'object':
      return value === null ? undefined : walkObject(value, depth, state)
    default:
      return bad(unserialisable(value))
  }
}

function walkObject(value: object, depth: number, state: Walk): Problem | undefined {
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return walkToJson(value, toJSON, depth, state)
  return walkContainer(value, depth, state)
}

function walkContainer(value: object, depth: number, state: Walk): Problem | undefined {
  if (depth >= payloadDepthMax) return { ...bad(''), kind: 'depth', trail: [[value, '']] }
  if (state.size > sizeGiveUp) return { ...bad(''), kind: 'size' }
  if (Array.isArray(value)) return walkArray(value, depth + 1, state)
  if (isPlain(value)) return walkPlain(value as Record<string, unknown>, depth + 1, state)
  return bad(`is a ${className(value)}, which JSON does not keep`)
}

function walkArray(items: readonly unknown[], depth: number, state: Walk): Problem | undefined {
  state.size += items.length
  for (let index = 0; index < items.length; index++) {
    const problem = walk(items[index], depth, state)
    if (problem !== undefined) return outward(problem, items, `[${index}]`)
  }
  return undefined
}

function walkPlain(value: Record<string, unknown>, depth: number, state: Walk): Problem | undefined {
  const keys = Object.keys(value)
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string
    state.size += key.length + 4
    const problem = walk(value[key], depth, state)
    if (problem !== undefined) return outward(problem, value, stepTo(key))
  }
  if (Object.getOwnPropertySymbols(value).length === 0) return undefined
  return bad('has a symbol as key, which JSON drops')
}

function walkToJson(
  value: object,
  toJson: { call(self: object, key: string): unknown },
  depth: number,
  state: Walk,
): Problem | undefined {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    return bad('is an invalid Date, which JSON turns into null')
  }
  let plain: unknown
  try {
    plain = toJson.call(value, '')
  } catch (cause) {
    return { ...bad('has a toJSON() that throws'), cause }
  }
  // JSON.stringify does not call toJSON() on what toJSON() returned; neither do we.
  if (typeof plain !== 'object' || plain === null) return walk(plain, depth, state)
  return walkContainer(plain, depth, state)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  // An object of another realm (vm, frame): its prototype is that realm's Object.prototype.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

function className(value: object): string {
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' ? name.slice(0, 64) : 'class instance'
}

function unserialisable(value: unknown): string {
  if (value === undefined) return 'is undefined, which JSON drops: use null or leave it out'
  if (typeof value === 'bigint') return 'is a BigInt, which JSON cannot hold: use a string'
  return `is a ${typeof value}, which JSON drops`
}

function bad(says: string): Problem {
  return { kind: 'value', path: '', says, trail: [] }
}

function outward(problem: Problem, container: object, step: string): Problem {
  problem.path = step + problem.path
  if (problem.kind === 'depth') problem.trail.unshift([container, step])
  return problem
}

function stepTo(key: string): string {
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(key)) return `.${key}`
  return `[${JSON.stringify(key.slice(0, 64))}]`
}

/** A toJSON() or getter that answers differently the second time can still fail here. */
function stringify(payload: unknown, where: string): string {
  let cause: unknown
  try {
    const text: string | undefined = JSON.stringify(payload)
    if (text !== undefined) return text
  } catch (error) {
    cause = error
  }
  throw refusal({ ...bad('cannot be turned into JSON'), cause }, where)
}

/** The slow second look, taken only when the text has an escape `\u`. */
function findUnstorable(value: unknown, path: string): Problem | undefined {
  if (typeof value === 'string') {
    const says = unstorableText(value)
    return says === undefined ? undefined : { ...bad(says), path }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, item] of Object.entries(value)) {
    const inner = path + (Array.isArray(value) ? `[${key}]` : stepTo(key))
    const problem = findUnstorable(key, inner) ?? findUnstorable(item, inner)
    if (problem !== undefined) return problem
  }
  return undefined
}

function refusal(problem: Problem, where: string): HermodError {
  if (problem.kind === 'size') return tooLarge(where, sizeGiveUp, 'more than ')
  if (problem.kind === 'depth') return cycleOrDepth(problem, where)
  const path = `$${problem.path}`
  const options = { field: where, details: { path }, cause: problem.cause }
  return new HermodError('HMD_PAYLOAD_INVALID', `${where}: ${path} ${problem.says}`, options)
}

function cycleOrDepth(problem: Problem, where: string): HermodError {
  const seen = new Set<object>()
  let path = ''
  for (const [container, step] of problem.trail) {
    if (seen.has(container)) return refusal({ ...bad('refers back to what holds it'), path }, where)
    seen.add(container)
    path += step
  }
  return new HermodError(
    'HMD_PAYLOAD_TOO_LARGE',
    `${where} is nested deeper than ${payloadDepthMax} levels: flatten it or emit a reference`,
    { field: where, details: { path: `$${problem.path}`, depthMax: payloadDepthMax } },
  )
}

function tooLarge(where: string, bytes: number, over = ''): HermodError {
  return new HermodError(
    'HMD_PAYLOAD_TOO_LARGE',
    `${where} has ${over}${bytes} bytes of JSON, ${payloadBytesMax} are allowed: emit a reference`,
    { field: where, details: { bytes, bytesMax: payloadBytesMax } },
  )
}
