/** Duck typing: looks at the shape of an object whose library is not known yet. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

export function hasMethods<T extends object>(value: unknown, ...names: readonly (keyof T & string)[]): value is T {
  return isObject(value) && names.every((name) => typeof value[name] === 'function')
}
