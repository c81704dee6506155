/** How the platform is doing, in words for people: `/api/v2/health`, and what this server is. */
import type { FastifyInstance } from 'fastify'
import type { Stats, SubscriptionStats } from 'hermod'
import { Type } from 'typebox'
import { demoPeople } from '../access/development.ts'
import { statsFor } from '../health-words.ts'
import type { Platform } from '../platform.ts'
import { version } from '../version.ts'
import { actorOf } from './actor-of.ts'
import { answers } from './responses.ts'

const about = Type.Object(
  {
    name: Type.String({ examples: ['hermod'] }),
    version: Type.String({ examples: ['0.1.0'] }),
    development: Type.Boolean({ description: 'Started by npm start: demo people may sign in' }),
    people: Type.Array(Type.Object({ name: Type.String(), displayName: Type.String(), role: Type.String() }), {
      description: 'The demo people; none outside development',
    }),
  },
  { description: 'What this server is' },
)

const subscription = Type.Object({
  name: Type.String({ examples: ['documents'] }),
  health: Type.String({ examples: ['ok'] }),
  why: Type.String({ examples: ['keeping up'] }),
  since: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
  pending: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Null when it could not be counted in time',
  }),
  oldestPendingAgeMs: Type.Union([Type.Integer(), Type.Null()]),
  retrying: Type.Union([Type.Integer(), Type.Null()]),
  dead: Type.Union([Type.Integer(), Type.Null()]),
})

const health = Type.Object(
  {
    status: Type.Enum(['ok', 'attention'], { description: 'attention = a person should act' }),
    says: Type.String({ examples: ['All 2 subscriptions are keeping up.'] }),
    at: Type.String({ format: 'date-time' }),
    workers: Type.Integer(),
    head: Type.String({ description: 'The highest position', examples: ['1042'] }),
    subscriptions: Type.Array(subscription),
  },
  { description: 'One sentence, and the subscriptions behind it' },
)

/** The answer is shared: the database is asked at most once a second. */
const keptMs = 1_000

export function statusRoutes(app: FastifyInstance, platform: Platform): void {
  const tags = ['health']
  const asking = {
    tags,
    operationId: 'about',
    summary: 'What this server is',
    security: [],
    response: answers({ 200: about }),
  }
  const { development } = platform.config
  app.get('/api/v2/about', { config: { permission: 'public' }, schema: asking }, async () => ({
    name: 'hermod',
    version,
    development,
    people: development ? demoPeople : [],
  }))
  const looking = {
    tags,
    operationId: 'health',
    summary: 'Is something broken that a person should act on?',
    response: answers({ 200: health }),
  }
  const stats = kept(() => platform.outbox.stats({ timeoutMs: 1_000 }), keptMs)
  app.get('/api/v2/health', { config: { permission: 'search:read' }, schema: looking }, async (request) => {
    const details = actorOf(request).permissions.has('outbox:read')
    const { subscriptions, ...rest } = await stats()
    return healthOf({ ...rest, subscriptions: statsFor(subscriptions, details) })
  })
}

function kept<T>(read: () => Promise<T>, forMs: number): () => Promise<T> {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined
  return () => {
    if (last === undefined || performance.now() - last.atMs > forMs) {
      last = { atMs: performance.now(), value: read() }
    }
    return last.value
  }
}

function healthOf(stats: Stats) {
  const open = stats.subscriptions.filter((one) => needsSomebody(one))
  return {
    status: open.length === 0 && stats.workers > 0 ? 'ok' : 'attention',
    says: sentenceOf(stats, open),
    at: stats.at.toISOString(),
    workers: stats.workers,
    head: String(stats.head),
    subscriptions: stats.subscriptions.map(shown),
  }
}

function needsSomebody({ health, dead, unknown }: SubscriptionStats): boolean {
  const calm = ['ok', 'paused', 'dry-run'].includes(health.word)
  return !calm || (dead ?? 0) > 0 || (unknown ?? 0) > 0
}

/** The worst state first: people read one sentence. */
export function sentenceOf(
  { subscriptions, workers }: Pick<Stats, 'subscriptions' | 'workers'>,
  open: readonly SubscriptionStats[],
): string {
  if (subscriptions.length === 0) return 'There is no subscription yet.'
  if (workers === 0) return 'No worker runs: changes are safe, but search does not follow.'
  const [first] = open
  if (first === undefined) {
    const count = subscriptions.length
    return count === 1 ? 'The one subscription is keeping up.' : `All ${count} subscriptions are keeping up.`
  }
  const more = open.length > 1 ? ` ${open.length - 1} more need attention.` : ''
  if (first.health.word !== 'ok') {
    return `${first.name} is ${first.health.word}: ${first.health.why}.${more}`
  }
  const [count, what] = first.dead ? [first.dead, 'dead'] : [first.unknown, 'of unknown outcome']
  return `${first.name} has ${count} ${count === 1 ? 'delivery' : 'deliveries'} ${what}.${more}`
}

function shown(one: SubscriptionStats) {
  const { name, health, pending, oldestPendingAgeMs, retrying, dead } = one
  return {
    name,
    health: health.word,
    why: health.why,
    pending,
    oldestPendingAgeMs,
    retrying,
    dead,
    since: health.since?.toISOString() ?? null,
  }
}
