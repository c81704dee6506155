/**
 * Pinned xmin: a transaction stays open while events pass. Nothing that died since can be removed,
 * and a queue that updates or deletes its rows wades through what is left of them.
 */
import pg from 'pg'
import { rounded, summary } from '../numbers.mjs'
import { ratio } from '../rounds.mjs'
import { describeSystem, ours } from '../systems.mjs'

const DEAD = `select c.relname as name, (pgstattuple(c.oid)).dead_tuple_count::int as dead
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relkind in ('r', 'm')`
const appendOnly = /^(event|log)_/

export default {
  name: 'xmin',
  title: 'pinned xmin: drain while a transaction stays open, against the same without',
  weight: 30,
  sizes: {
    tiny: { rounds: 1, events: 500, warmEvents: 0, peerEvents: {}, peerRounds: 1 },
    quick: {
      rounds: 3,
      events: 50_000,
      warmEvents: 2_000,
      peerRounds: 1,
      peerEvents: {
        'pg-boss': 15_000,
        'graphile-worker': 15_000,
        'pg-transactional-outbox': 1_000,
      },
    },
    full: {
      rounds: 5,
      events: 500_000,
      warmEvents: 5_000,
      peerRounds: 3,
      peerEvents: {
        'pg-boss': 100_000,
        'graphile-worker': 100_000,
        'pg-transactional-outbox': 10_000,
      },
    },
  },

  async run(bench) {
    const rounds = await bench.rounds(bench.everyone, (system, round) =>
      system === ours || round < bench.size.peerRounds ? both(bench, system) : null,
    )
    const ratioOf = (name) => {
      const seen = rounds.filter((round) => round[name] !== null)
      return ratio(
        seen,
        (round) => round[name].pinned.perSecond,
        (round) => round[name].free.perSecond,
      )
    }
    const dead = (name, which) => summary(rounds.flatMap((round) => round[name]?.pinned[which] ?? []))?.max ?? null
    const peer = (name) => [name, { ratio: ratioOf(name), deadTuples: dead(name, 'deadEverywhere') }]
    return {
      figures: {
        ratio: ratioOf(ours),
        deadTuples: dead(ours, 'deadInLog'),
        deadTuplesEverywhere: dead(ours, 'deadEverywhere'),
        eventsPerSecond: rounded(summary(rounds.map((round) => round[ours].pinned.perSecond)).median),
        peers: Object.fromEntries(bench.peers.map(peer)),
      },
      raw: { rounds },
    }
  },
}

async function both(bench, system) {
  return { free: await one(bench, system, false), pinned: await one(bench, system, true) }
}

async function one(bench, system, isPinned) {
  const events = bench.size.peerEvents[system] ?? bench.size.events
  return bench.with(system, {}, async (database) => {
    await database.query('create extension pgstattuple')
    const pin = isPinned ? await openTransaction(database.url) : undefined
    try {
      await bench.stage.fill(system, database, events)
      await bench.stage.checkpoint()
      const { seconds, perSecond } = await bench.drainWarm(system, database, events)
      return { events, seconds, perSecond, ...(await deadTuples(system, database)) }
    } finally {
      await pin?.end()
    }
  })
}

/** Holds a snapshot and a transaction id. */
async function openTransaction(url) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin isolation level repeatable read')
  await client.query('select pg_current_xact_id(), count(*) from app.document')
  return client
}

async function deadTuples(system, database) {
  const { schema } = await describeSystem(system)
  const rows = await database.query(DEAD, [schema])
  const sum = (list) => list.reduce((total, { dead }) => total + dead, 0)
  return {
    deadEverywhere: sum(rows),
    deadInLog: sum(rows.filter(({ name }) => appendOnly.test(name))),
  }
}
