/**
 * The platform's API: edits a second with and without the outbox, and how long after the answer to an
 * edit the first search shows it, while 200 requests a second run: 50 edits, 100 reads, 50 searches, and
 * the searches that watch every second edit.
 */
import { begin, measure } from '../measure.mjs'
import { percentile, rounded, summary } from '../numbers.mjs'
import { ratio } from '../rounds.mjs'
import { ours } from '../systems.mjs'

const size = { connections: 16, perSecond: 200 }

export default {
  name: 'api',
  title: 'api: edits through HTTP, with and without the outbox, and searchable after',
  weight: 60,
  /** Only when it is asked for: it measures the server, not the engine against its peers. */
  apart: true,
  sizes: {
    tiny: { ...size, rounds: 1, seconds: 1, warmSeconds: 0.2, samples: 30, warmSamples: 5 },
    quick: { ...size, rounds: 3, seconds: 4, warmSeconds: 1, samples: 1_000, warmSamples: 100 },
    full: { ...size, rounds: 5, seconds: 5, warmSeconds: 1, samples: 5_000, warmSamples: 200 },
  },

  async run(bench) {
    const rounds = await bench.rounds(['with', 'without', 'working'], (name) => writes(bench, name))
    bench.say('searchable')
    const { waits, answers, reachedPerSecond } = await searchable(bench)
    const rate = (round) => round.with
    return {
      figures: {
        writesPerSecond: rounded(summary(rounds.map(rate))?.median),
        vsWithoutOutbox: ratio(rounds, rate, (round) => round.without),
        withWorkerVsWithoutOutbox: ratio(
          rounds,
          (round) => round.working,
          (round) => round.without,
        ),
        searchableP50Ms: rounded(percentile(waits, 0.5)),
        searchableP99Ms: rounded(percentile(waits, 0.99)),
        searchableMaxMs: rounded(Math.max(...waits)),
        samples: waits.length,
        answerP99Ms: rounded(percentile(answers, 0.99)),
        reachedPerSecond: rounded(reachedPerSecond),
      },
      raw: { rounds, waits: waits.map(rounded) },
    }
  },
}

/** `working`: with a worker that makes the edits searchable on the same two cores. */
function writes(bench, kind) {
  const { connections, seconds, warmSeconds } = bench.size
  const parts = { outbox: kind !== 'without', worker: kind === 'working' }
  return withServer(bench, parts, async (api) => {
    await bench.stage.checkpoint()
    const task = { role: 'api-load', system: ours, api, connections, seconds, warmSeconds }
    return (await measure(task)).perSecond
  })
}

function searchable(bench) {
  const { perSecond, samples, warmSamples } = bench.size
  return withServer(bench, { outbox: true, worker: true }, (api) =>
    measure({
      role: 'api-watch',
      system: ours,
      api,
      perSecond,
      samples,
      warmSamples,
    }),
  )
}

function withServer(bench, { outbox, worker }, work) {
  return bench.with(ours, {}, async ({ url }) => {
    const server = await started({ role: 'api-serve', system: ours, url, outbox })
    const others = worker ? [await started({ role: 'api-work', system: ours, url })] : []
    try {
      return await work(server.said.url)
    } finally {
      for (const { tell, exited } of [...others, server]) {
        tell({ word: 'stop' })
        await exited
      }
    }
  })
}

/** A process that said it is ready. */
async function started(task) {
  let hear
  const ready = new Promise((resolve) => {
    hear = resolve
  })
  const process = begin(task, { heard: hear })
  const said = await Promise.race([ready, process.result])
  return { ...process, said }
}
