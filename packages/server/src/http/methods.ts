/**
 * A known path with a method it does not know is 405 with Allow; Fastify alone would say 404. Both are answered before a body is read:
 * a method that needs one must not become an error of another kind.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { Problem } from '../problems.ts'

interface KnownRoute {
  readonly url: string
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

/** Call what it returns once the hooks are there that every answer needs. */
export function rememberMethods(app: FastifyInstance): () => void {
  const known: KnownRoute[] = []
  app.addHook('onRoute', (route) => {
    known.push({ url: route.url, pattern: patternOf(route), methods: [route.method].flat() })
  })
  app.setNotFoundHandler((request) => {
    throw refusal(request, known)
  })
  return () => {
    app.addHook('onRequest', async (request) => {
      if (request.is404 || isShadowed(request, known)) throw refusal(request, known)
    })
  }
}

/** `GET /people/import` is no person called import: a path of its own comes before one with a parameter. */
function isShadowed({ url, routeOptions }: FastifyRequest, known: readonly KnownRoute[]): boolean {
  if (!routeOptions.url?.includes('/:')) return false
  const path = pathOf(url)
  return known.some((route) => route.url === path)
}

function patternOf({ url }: RouteOptions): RegExp {
  const parts = url.split('/').map((part) => {
    if (part.startsWith(':')) return '[^/]+'
    return part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${parts.join('/')}$`)
}

function refusal({ method, url }: FastifyRequest, known: readonly KnownRoute[]): Problem {
  const path = pathOf(url)
  const exact = known.filter((route) => route.url === path)
  const routes = exact.length > 0 ? exact : known.filter(({ pattern }) => pattern.test(path))
  const methods = new Set(routes.flatMap(({ methods }) => methods))
  if (methods.size === 0 || methods.has(method)) {
    return new Problem('HMD_NOT_FOUND', `There is no ${path}.`)
  }
  const allow = [...methods].sort().join(', ')
  return new Problem('HMD_METHOD_NOT_ALLOWED', `${path} knows ${allow}.`, { headers: { allow } })
}

function pathOf(url: string): string {
  return url.split('?')[0] ?? ''
}
