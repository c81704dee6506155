/** What a setting is, and how values from outside are read: as text from variables, as they are from TOML. */

/** What a value is: itself, or what it must be. */
export type Read<T> = { readonly value: T } | { readonly must: string }

export interface Setting {
  /** Path in the project file and in Config: `limits.perMinute`. */
  readonly key: string
  readonly variables: readonly [string, ...string[]]
  readonly says: string
  /** As the project file would say it; undefined = has to be given. */
  readonly fallback?: string | number | boolean | readonly never[]
  /** Shown as *** (or a URL without its password). */
  readonly masked?: true
  /** An example of a right value, for messages. */
  readonly example: string
  read(given: unknown): Read<unknown>
}

export function setting(key: string, rest: Omit<Setting, 'key' | 'variables'> & Partial<Setting>) {
  const words = key.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase()
  return Object.freeze({ variables: [`HERMOD_${words}`] as const, ...rest, key })
}

export function text(lengthMin: number, lengthMax: number) {
  const must = `must be text of ${lengthMin} to ${lengthMax} characters`
  return (given: unknown): Read<string> =>
    typeof given === 'string' && given.length >= lengthMin && given.length <= lengthMax ? { value: given } : { must }
}

export function whole(min: number, max: number) {
  return (given: unknown): Read<number> => {
    const value = typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : given
    return Number.isInteger(value) && Number(value) >= min && Number(value) <= max
      ? { value: Number(value) }
      : { must: `must be a whole number from ${min} to ${max}` }
  }
}

export function oneOf(words: readonly string[]) {
  return (given: unknown): Read<string> =>
    words.includes(given as string) ? { value: given as string } : { must: `must be one of ${words.join(', ')}` }
}

/** Days may have a fraction: 0.5 is twelve hours. */
export function days(given: unknown): Read<number> {
  const value = typeof given === 'string' && /^\d{1,4}(\.\d{1,6})?$/.test(given) ? Number(given) : given
  return typeof value === 'number' && value >= 0 && value <= 3_650
    ? { value }
    : { must: 'must be a number of days from 0 to 3650' }
}
