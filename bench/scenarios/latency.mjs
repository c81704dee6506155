/** Latency: from the answer to COMMIT until the sink acknowledges, at 1,000 events/s. */
import { setTimeout as pause } from 'node:timers/promises'
import { begin, measure } from '../measure.mjs'
import { percentile, rounded, summary } from '../numbers.mjs'
import { ours } from '../systems.mjs'

const size = { perSecond: 1_000, connections: 16, graceMs: 3_000 }
const sampleMs = 5

/** Smaller batches than for a drain: what waits in a batch waits for all of it. */
const hermod = { concurrency: 1, batch: 500 }
const differences = {
  hermod,
  before: hermod,
  'pg-boss': { loops: 2, batch: 100 },
  'graphile-worker': { localQueue: 50 },
  'pg-transactional-outbox': { batch: 50, idleMs: 2 },
}

export default {
  name: 'latency',
  title: 'latency: commit → acknowledged by the sink at 1,000 events/s, one event a transaction',
  weight: 38,
  sizes: {
    tiny: { ...size, rounds: 1, events: 300, warmEvents: 50 },
    quick: { ...size, rounds: 3, events: 3_000, warmEvents: 1_000 },
    full: { ...size, rounds: 5, events: 23_000, warmEvents: 3_000, graceMs: 10_000 },
  },

  async run(bench) {
    const rounds = await bench.rounds(bench.everyone, (system) => one(bench, system))
    const figure = (system, name) => rounded(summary(rounds.map((round) => round[system][name]))?.median)
    // Some do not reach the rate: what they say is for the rate they reach.
    const names = ['p50Ms', 'p99Ms', 'reachedPerSecond']
    const all = (system) => Object.fromEntries(names.map((name) => [name, figure(system, name)]))
    return {
      figures: {
        ...all(ours),
        backlogP99: figure(ours, 'backlogP99'),
        peers: Object.fromEntries(bench.peers.map((peer) => [peer, all(peer)])),
      },
      raw: { rounds },
    }
  },
}

async function one(bench, system) {
  const { events, warmEvents, perSecond, connections, graceMs } = bench.size
  const settings = bench.settings(system, differences[system])
  return bench.with(system, {}, async (database) => {
    const { url } = database
    await bench.stage.checkpoint()
    const worker = await watched({ role: 'consume', system, url, settings, remember: events })
    const task = { role: 'produce', system, url, events, perSecond, connections }
    const { sent, commits, startedMs, endedMs } = await measure(task)
    await worker.until(events, graceMs)
    worker.tell({ word: 'stop' })
    const { acknowledged } = await worker.result
    await worker.exited
    // Too late is a figure; lost would be none.
    if (system === ours) await bench.check(system, { database, events })
    const reachedPerSecond = (events / (endedMs - startedMs)) * 1_000
    return { ...judge(sent, commits, acknowledged, warmEvents), reachedPerSecond }
  })
}

/** A running worker that can be waited for. */
async function watched(task) {
  let count = 0
  let isReady
  const ready = new Promise((resolve) => {
    isReady = resolve
  })
  const process = begin(task, {
    heard: (message) => {
      if (message.word === 'count') count = message.count
      else isReady()
    },
  })
  await Promise.race([ready, process.result])
  const until = async (events, limitMs) => {
    const untilMs = performance.now() + limitMs
    while (count < events && performance.now() < untilMs) await pause(10)
  }
  return { ...process, until }
}

/**
 * From the answer to COMMIT; from its sending for whoever doubts the moment an answer is read. What
 * was not delivered in time counts as delivered at the end.
 */
function judge(sent, commits, acknowledged, from) {
  const endMs = Math.max(...acknowledged, ...commits)
  const acks = acknowledged.map((at) => at ?? endMs)
  const since = (starts) => starts.map((at, index) => Math.max(0, acks[index] - at)).slice(from)
  const waits = since(commits)
  return {
    p50Ms: percentile(waits, 0.5),
    p99Ms: percentile(waits, 0.99),
    maxMs: Math.max(...waits),
    p50FromSentMs: percentile(since(sent), 0.5),
    backlogP99: percentile(backlogs(commits, acks, commits[from]), 0.99),
    missing: acknowledged.filter((at) => at === null).length,
  }
}

/** Committed and not yet acknowledged, looked at every few milliseconds. */
function backlogs(commits, acks, fromMs) {
  const [committed, done] = [Float64Array.from(commits).sort(), Float64Array.from(acks).sort()]
  const samples = []
  let [c, d] = [0, 0]
  for (let at = fromMs; at < committed.at(-1); at += sampleMs) {
    while (c < committed.length && committed[c] <= at) c++
    while (d < done.length && done[d] <= at) d++
    samples.push(Math.max(0, c - d))
  }
  return samples
}
