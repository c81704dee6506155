/** A page of another site must not reach the demo sign-in through a host name that resolves to loopback. */
import type { FastifyInstance } from 'fastify'
import { Problem } from '../problems.ts'

const near = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/

export function guardLoopback(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }) => {
    if (near.test(headers.host ?? '')) return
    throw new Problem('HMD_FORBIDDEN', 'Under npm start only localhost and 127.0.0.1 are answered.')
  })
}
