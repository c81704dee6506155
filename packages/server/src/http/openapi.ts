/** The API describes itself: OpenAPI 3.1 from the schemas of the routes, with a page to read it. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { version } from '../version.ts'
import { problemPage } from './problem-page.ts'

const description = `Documents, people and their audit trail, searchable right after the commit.

Send a token of a configured issuer or an API token: \`Authorization: Bearer …\`. Every error is an
RFC 9457 problem with a \`code\`; [all of them](/docs/problems) on one page. Times are UTC, 64-bit
numbers are text. A change names the version it saw (\`If-Match\`), a POST may carry an
\`Idempotency-Key\`. Fields may be added within v2: ignore what you do not know.`

export async function serveOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Hermod',
        version,
        description,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A JWT of a configured issuer, or an API token (hmd_…)',
          },
        },
      },
      security: [{ bearer: [] }],
    },
    transform: ({ schema, url }) => ({ schema: withoutDemands(schema), url }),
    refResolver: { buildLocalReference: ({ $id }, _baseUri, _fragment, i) => String($id ?? i) },
  })
  const open = { config: { permission: 'public' as const }, schema: { hide: true } }
  app.get('/openapi.json', open, async () => app.swagger())
  problemPage(app)
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // Without the bar on top: it offers to load documents from elsewhere.
    uiConfig: { layout: 'BaseLayout', deepLinking: true, validatorUrl: null },
    theme: { title: 'Hermod: the API' },
  })
}

/** What has a default may be left out: the validator fills it in, so nobody has to send it. */
function withoutDemands<T>(schema: T): T {
  const parts = Object.entries(schema ?? {}).map(([name, part]) => {
    return [name, ['querystring', 'headers', 'body'].includes(name) ? optional(part as Shape) : part]
  })
  return Object.fromEntries(parts) as T
}

interface Shape {
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, object>>
}

function optional(shape: Shape): Shape {
  const { required, properties = {} } = shape
  if (required === undefined) return shape
  return { ...shape, required: required.filter((name) => !('default' in (properties[name] ?? {}))) }
}
