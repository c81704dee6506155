/** A known path with a method it does not know is 405 with Allow; Fastify alone would say 404. */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { Problem } from '../problems.ts'

interface KnownRoute {
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

export function rememberMethods(app: FastifyInstance): void {
  const known: KnownRoute[] = []
  app.addHook('onRoute', (route) => {
    known.push({ pattern: patternOf(route), methods: [route.method].flat() })
  })
  app.setNotFoundHandler((request) => {
    throw refusal(request, known)
  })
}

function patternOf({ url }: RouteOptions): RegExp {
  const parts = url.split('/').map((part) => {
    if (part.startsWith(':')) return '[^/]+'
    return part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${parts.join('/')}/?$`)
}

function refusal({ method, url }: FastifyRequest, known: readonly KnownRoute[]): Problem {
  const [path = ''] = url.split('?')
  const methods = new Set(known.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))
  if (methods.size === 0 || methods.has(method)) {
    return new Problem('HMD_NOT_FOUND', `There is no ${path}.`)
  }
  const allow = [...methods].sort().join(', ')
  return new Problem('HMD_METHOD_NOT_ALLOWED', `${path} knows ${allow}.`, { headers: { allow } })
}
