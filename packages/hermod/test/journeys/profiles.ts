// A plain table that is captured, its index, and the subscription between them: what the tests of
// rebuild, verify and backfill work on.

import type { TestDatabase } from '../../../../test/support/database.ts'
import { createOutbox, type IndexOptions, type Outbox, tableSource } from '../../src/index.ts'
import type { SearchEngine } from '../../src/sinks/search/engine.ts'
import type { IndexDefinition } from '../../src/sinks/search/index.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import type { Listener } from '../../src/telemetry.ts'

export const BY = { actor: 'ada', reason: 'a test' }

export const definition: IndexDefinition = {
  fields: {
    name: { kind: 'text', weight: 4 },
    bio: { kind: 'text' },
    city: { kind: 'keyword', facet: true },
    age: { kind: 'number' },
  },
}

export const TABLE = `create table profile (
  id bigint primary key, name text not null, bio text not null default '', city text, age int, hidden boolean not null default false)`

/** Rows `from` to `to`, without events. */
export const FILL = `insert into profile (id, name, bio, city, age)
  select n, 'Person ' || n, 'speaks of topic ' || n % 50, 'city ' || n % 7, 20 + n % 50 from generate_series($1::int, $2::int) n`

export interface Profiles {
  readonly outbox: Outbox
  readonly engine: SearchEngine
  readonly index: ReturnType<Outbox['index']>
}

export interface ProfilesOptions {
  readonly engine?: SearchEngine
  readonly listener?: Listener
  readonly load?: boolean
  readonly index?: Partial<IndexOptions>
  /** Of the index and its subscription; `profiles` and `search` when left out. */
  readonly name?: string
}

export const source = () =>
  tableSource({
    table: 'profile',
    where: 'not hidden',
    columns: ['id', 'name', 'bio', 'city', 'age'],
  })

/** Declares everything; the table must be there and watched. */
export function profiles(db: Pick<TestDatabase, 'pool'>, options: ProfilesOptions = {}): Profiles {
  const engine = options.engine ?? postgresSearch({ pool: db.pool })
  const outbox = createOutbox({
    pool: db.pool,
    ...(options.listener && { listener: options.listener }),
  })
  const subscription = options.name ?? 'search'
  const index = outbox.index(options.name ?? 'profiles', {
    engine,
    definition,
    subscription,
    source: source(),
    keepMs: 0,
    ...options.index,
  })
  outbox.subscribe(subscription, {
    revision: 1,
    types: ['profile.*'],
    coalesce: 'latest',
    from: 'beginning',
    sink: index.sink(),
    ...(options.load !== false && { load: index.load, loads: 'references' }),
  })
  return { outbox, engine, index }
}

export async function prepare(db: TestDatabase, rows: number): Promise<void> {
  await db.query(TABLE)
  await db.query(FILL, [1, rows])
  const outbox = createOutbox({ pool: db.pool })
  await outbox.watch('profile', {
    type: 'profile',
    columns: ['name', 'bio', 'city', 'age', 'hidden'],
    payload: 'reference',
  })
  await outbox.close()
}
