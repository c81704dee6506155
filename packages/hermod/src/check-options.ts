/**
 * Validates options: a spec of rules turns what was given into complete, frozen options, or reports every
 * problem at once. For an unknown key it suggests the nearest known one.
 */
import { HermodError, type HermodErrorCode } from './errors.ts'
import { didYouMean } from './nearest.ts'

export interface Problem {
  readonly field: string
  readonly says: string
  readonly code?: HermodErrorCode
}

/** Reads one value. It reports problems instead of throwing; then its result is not used. */
export interface Rule<T> {
  read(value: unknown, field: string, problems: Problem[]): T
}

export type Spec = Readonly<Record<string, Rule<unknown>>>
export type Checked<S extends Spec> = {
  readonly [K in keyof S]: S[K] extends Rule<infer T> ? T : never
}

/** Throws HMD_OPTION_UNKNOWN or HMD_OPTION_INVALID with all of details.problems. */
export function checkOptions<S extends Spec>(what: string, given: unknown, spec: S): Checked<S> {
  const problems: Problem[] = []
  const checked = readGroup(given, '', spec, problems)
  refuse(what, problems)
  return checked
}

export function refuse(what: string, problems: readonly Problem[]): void {
  const [first] = problems
  if (first === undefined) return
  const codes = new Set(problems.map((problem) => problem.code ?? 'HMD_OPTION_INVALID'))
  const [code = 'HMD_OPTION_INVALID'] = codes.size === 1 ? codes : []
  const says = problems.map(({ field, says }) => `${field} ${says}`.trim()).join('; ')
  throw new HermodError(code, `${what}: ${says}`, { field: first.field, details: { problems } })
}

export function readGroup<S extends Spec>(given: unknown, at: string, spec: S, problems: Problem[]): Checked<S> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    problems.push({ field: at || 'options', says: `must be an object${got(given)}` })
    return {} as Checked<S>
  }
  const values = given as Record<string, unknown>
  const path = (key: string) => (at === '' ? key : `${at}.${key}`)
  const checked = Object.entries(spec).map(([key, rule]) => [
    key,
    rule.read(Object.hasOwn(values, key) ? values[key] : undefined, path(key), problems),
  ])
  for (const key of Object.keys(values)) {
    if (Object.hasOwn(spec, key)) continue
    const says = `is not an option${didYouMean(key, Object.keys(spec))}`
    problems.push({ field: path(key), says, code: 'HMD_OPTION_UNKNOWN' })
  }
  return Object.freeze(Object.fromEntries(checked)) as Checked<S>
}

export function rule<T>(read: Rule<T>['read']): Rule<T> {
  return Object.freeze({ read })
}

/** Absent means absent: no default. */
export function optional<T>(inner: Rule<T>): Rule<T | undefined> {
  return rule((value, field, problems) => (value === undefined ? undefined : inner.read(value, field, problems)))
}

export function withDefault<T>(inner: Rule<T>, fallback: unknown): Rule<T> {
  return rule((value, field, problems) => inner.read(value ?? fallback, field, problems))
}

export interface Bounds {
  readonly min: number
  readonly max?: number
  readonly default?: number
}

export const integer = (bounds: Bounds) => numeric(bounds, 'a whole number', Number.isSafeInteger)
export const decimal = (bounds: Bounds) => numeric(bounds, 'a number', Number.isFinite)

function numeric(
  { min, max = Number.MAX_SAFE_INTEGER, default: fallback }: Bounds,
  kind: string,
  fits: (value: unknown) => boolean,
): Rule<number> {
  const upTo = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  return rule((given, field, problems) => {
    const value = given === undefined ? fallback : given
    if (fits(value) && (value as number) >= min && (value as number) <= max) return value as number
    problems.push({ field, says: `must be ${kind} ${upTo}${got(value)}` })
    return min
  })
}

export function oneOf<const T extends string | number | boolean>(values: readonly T[], fallback?: T): Rule<T> {
  return rule((given, field, problems) => {
    const value = given === undefined ? fallback : given
    if (values.includes(value as T)) return value as T
    const hint = typeof value === 'string' ? didYouMean(value, values.map(String)) : ''
    problems.push({ field, says: `must be one of ${values.join(', ')}${got(value)}${hint}` })
    return values[0] as T
  })
}

export const flag = (fallback: boolean) => oneOf([true, false], fallback)

/** A text checked by `problem`, which returns what is wrong, or undefined. */
export function text(problem: (value: unknown) => string | undefined): Rule<string> {
  return rule((value, field, problems) => {
    const says = typeof value === 'string' ? problem(value) : 'must be a string'
    if (says !== undefined) problems.push({ field, says: says + got(value) })
    return value as string
  })
}

/** A secret must not be empty, and is never echoed. */
export function secret(): Rule<string> {
  return rule((value, field, problems) => {
    if (typeof value === 'string' && value.trim() !== '') return value
    problems.push({ field, says: 'must be a non-empty string (is the environment variable set?)' })
    return ''
  })
}

export function list<T>(item: Rule<T>, { min = 0, max = 1000 } = {}): Rule<readonly T[]> {
  return rule((value, field, problems) => {
    if (!Array.isArray(value) || value.length < min || value.length > max) {
      problems.push({ field, says: `must be a list of ${min} to ${max} items${got(value)}` })
      return []
    }
    const items = value.map((one, index) => item.read(one, `${field}[${index}]`, problems))
    return Object.freeze(items)
  })
}

export function group<S extends Spec>(spec: S): Rule<Checked<S>> {
  return rule((value, field, problems) => readGroup(value, field, spec, problems))
}

export function callable<F = (...args: never[]) => unknown>(): Rule<F> {
  return rule((value, field, problems) => {
    if (typeof value !== 'function') problems.push({ field, says: `must be a function${got(value)}` })
    return value as F
  })
}

/** An object that has these methods, such as a pool (`connect`, `query`). */
export function having<T>(methods: readonly string[], says: string): Rule<T> {
  return rule((value, field, problems) => {
    const target = (value ?? {}) as Record<string, unknown>
    const fits = methods.every((name) => typeof target[name] === 'function')
    if (!fits) problems.push({ field, says })
    return value as T
  })
}

/** ` (got '10s')`: short and harmless values are shown, of others only the type. */
export function got(value: unknown): string {
  if (value === undefined) return ' and is missing'
  if (typeof value === 'string') return ` (got ${JSON.stringify(value.slice(0, 40))})`
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? ' (got a list)' : ' (got an object)'
  return typeof value === 'function' ? ' (got a function)' : ` (got ${String(value)})`
}
