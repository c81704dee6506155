// The index that is rebuilt in the middle of a run: PostgreSQL search over a table of the workload.
// Its own table at the end is what the destination says.

import { importEngine } from './engine.mjs'

/** Of the live generation: what a reader would see. */
export async function catalogueState(client) {
  const { rows } = await client.query(
    `select id from search.generation where index_name = 'catalogue' and state = 'live'`,
  )
  const text = `select 'tile/' || id as agg, (source->>'version')::int as v from search."catalogue_g${rows[0].id}" where not deleted`
  return (await client.query(text)).rows
}

export async function declareCatalogue(hermod, outbox, { engine, pool, sub, callMs }) {
  const { postgresSearch } = await importEngine(engine, 'sinks/search/postgres.js')
  const query = `select split_part(id, '/', 2) as id, id as label, version from chaos.row where id like 'tile/%' and version > 0`
  const index = outbox.index(sub.name, {
    engine: postgresSearch({ pool }),
    definition: { fields: { label: { kind: 'keyword' }, version: { kind: 'number' } } },
    source: hermod.querySource({ query, name: 'chaos.row' }),
    subscription: sub.name,
    keepMs: 500,
  })
  outbox.subscribe(sub.name, {
    revision: 1,
    types: ['*'],
    from: 'beginning',
    aggregates: sub.aggregates,
    coalesce: sub.coalesce,
    batch: sub.batch,
    callMs,
    retry: { baseMs: 100, capMs: 1_000, attemptsMax: 20 },
    sink: index.sink(),
    load: index.load,
  })
  return index
}
