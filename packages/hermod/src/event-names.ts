/** The grammar of names: event types (`noun.verbed`), aggregate types, payload versions. */

export const nameBytesMax = 128
export const versionMax = 32_767

const TYPE = /^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+$/
const AGGREGATE_TYPE = /^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$/

/** What is wrong with an event type, or undefined. */
export function eventTypeProblem(type: unknown): string | undefined {
  if (typeof type !== 'string') return 'must be a string like document.updated'
  if (type.length > nameBytesMax) return `must be at most ${nameBytesMax} bytes`
  if (TYPE.test(type)) return undefined
  return 'must be noun.verbed: lower case letters, digits and _, dotted'
}

/** What is wrong with an aggregate type, or undefined. */
export function aggregateTypeProblem(type: unknown): string | undefined {
  if (typeof type !== 'string') return 'must be a string like document'
  if (type.length > nameBytesMax) return `must be at most ${nameBytesMax} bytes`
  return AGGREGATE_TYPE.test(type) ? undefined : 'must be lower case letters, digits and _'
}
