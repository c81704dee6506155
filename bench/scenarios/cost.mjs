/**
 * Cost: bytes of WAL and of tables per event, from its insert until it is settled, and the memory of
 * a worker before a large backlog. The deletes with which pg-boss and pg-transactional-outbox
 * remove handled rows later are not counted, in their favour.
 */
import { rounded, summary } from '../numbers.mjs'
import { valuesOf } from '../rounds.mjs'
import { describeSystem, ours } from '../systems.mjs'

const TABLES = `select sum(pg_total_relation_size(c.oid))::float8 as bytes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relkind in ('r', 'm')`

export default {
  name: 'cost',
  title: 'cost: bytes of WAL and of tables per event, memory of a worker',
  weight: 16,
  sizes: {
    tiny: { rounds: 1, events: 500, rssEvents: 500, peerEvents: {} },
    quick: {
      rounds: 1,
      events: 30_000,
      rssEvents: 100_000,
      peerEvents: {
        'pg-boss': 10_000,
        'graphile-worker': 10_000,
        'pg-transactional-outbox': 1_000,
      },
    },
    full: {
      rounds: 3,
      events: 200_000,
      rssEvents: 1_000_000,
      peerEvents: {
        'pg-boss': 50_000,
        'graphile-worker': 50_000,
        'pg-transactional-outbox': 10_000,
      },
    },
  },

  async run(bench) {
    const rounds = await bench.rounds(bench.everyone, (system) => one(bench, system))
    const figure = (name, what) => rounded(summary(valuesOf(rounds, (round) => round[name][what]))?.median)
    const both = (name) => ({
      walBytes: figure(name, 'walBytes'),
      tableBytes: figure(name, 'tableBytes'),
    })
    bench.say(`memory before ${bench.size.rssEvents} events`)
    const { rssMb } = await memory(bench)
    return {
      figures: {
        ...both(ours),
        rssMb: rounded(rssMb),
        rssBacklog: bench.size.rssEvents,
        peers: Object.fromEntries(bench.peers.map((peer) => [peer, both(peer)])),
      },
      raw: { rounds },
    }
  },
}

async function one(bench, system) {
  const events = bench.size.peerEvents[system] ?? bench.size.events
  const { schema } = await describeSystem(system)
  return bench.with(system, {}, async (database) => {
    const size = async () => (await database.query(TABLES, [schema]))[0].bytes
    const emptyBytes = await size()
    await bench.stage.checkpoint()
    const before = await bench.stage.walBytes()
    await bench.stage.fill(system, database, events)
    await bench.drain(system, [{ database, events }])
    const walBytes = ((await bench.stage.walBytes()) - before) / events
    return { events, walBytes, tableBytes: ((await size()) - emptyBytes) / events }
  })
}

async function memory(bench) {
  const events = bench.size.rssEvents
  return bench.with(ours, { events }, (database) => bench.drain(ours, [{ database, events }]))
}
