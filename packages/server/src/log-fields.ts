/**
 * What a log line may say about a request, an answer or an error: an allow list. Messages of the
 * database quote what a user typed, so text in quotes is left out of them, and of a stack only
 * the places are kept.
 */
interface Failed {
  readonly name?: unknown
  readonly code?: unknown
  readonly message?: unknown
  readonly stack?: unknown
  readonly cause?: unknown
  readonly table?: unknown
  readonly constraint?: unknown
  readonly routine?: unknown
}

const placesMax = 6
const detailMax = 300

/** An error that became a 5xx: its own code, and what is known about the cause. */
export function failureOf(error: Failed): Record<string, unknown> {
  const cause = (error.cause ?? error) as Failed
  return { code: error.code, cause: errorFields(cause) }
}

export function errorFields(error: unknown): Record<string, unknown> {
  const { name, code, message, stack, table, constraint, routine } = (error ?? {}) as Failed
  const given = { name, code, table, constraint, routine }
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === 'string')),
    detail: unquoted(String(message ?? '')),
    at: placesOf(stack),
  }
}

/** Everything between quotes, of any kind, may be somebody's data. */
function unquoted(message: string): string {
  const [first = ''] = message.split('\n')
  return first.replace(/"[^"]*"?|'[^']*'?|`[^`]*`?/g, '"…"').slice(0, detailMax)
}

function placesOf(stack: unknown): string[] {
  if (typeof stack !== 'string') return []
  const lines = stack.split('\n').map((line) => line.trim())
  return lines.filter((line) => /^at .*:\d+:\d+\)?$/.test(line)).slice(0, placesMax)
}

interface Asked {
  readonly id?: unknown
  readonly method?: unknown
  readonly routeOptions?: { readonly url?: unknown }
}

/** For the logger: Fastify hands whole requests, answers and errors to it. */
export const serializers = {
  err: errorFields,
  error: errorFields,
  req: ({ id, method, routeOptions }: Asked) => ({ id, method, route: routeOptions?.url }),
  res: ({ statusCode }: { readonly statusCode?: unknown }) => ({ statusCode }),
}
