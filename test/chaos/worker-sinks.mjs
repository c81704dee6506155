// The sinks of a worker as its author would write them: HTTP to the sinks' process, one for plain
// calls, one for a destination with tasks, one for mail.

import { Agent, request as httpRequest } from 'node:http'

/** `parts`: the outcomes of the engine, where the sinks are, and who speaks. */
export function makeSinks({ outcomes, port, name, history }) {
  const { delivered, rejected, retry, split, superseded, outcomeOfStatus } = outcomes
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const meaning = {
    ok: () => delivered(),
    superseded: () => superseded(),
    retry: () => retry({ code: 'trouble', message: 'not now' }),
    rejected: () => rejected({ code: 'poison', message: 'never' }),
  }

  let calls = 0

  /** Each call has a name, so that what was accepted without an answer can be counted. */
  async function post(sub, path, body, signal) {
    const from = Date.now()
    const cid = `${name}#${++calls}`
    try {
      return await call({ agent, port, name, cid }, path, body, signal)
    } catch (error) {
      history.write({ k: 'callfail', sub, who: name, cid, from, to: Date.now(), code: error.code })
      throw error
    }
  }

  const mapped = ({ status, headers }, items, ledger = false) =>
    outcomeOfStatus(status, { items, ledger, retryAfter: headers['retry-after'] })

  /** `heedless`: as many are, it does not heed the signal. */
  function plain({ name: sub, keepsOrder, versions = false, heedless = false }) {
    return {
      name: sub,
      capabilities: { keepsOrder, perItemResult: true, externalVersion: versions },
      async deliver(events, { signal }) {
        const answer = await post(sub, `/${sub}`, events.map(sent), heedless ? undefined : signal)
        if (answer.status !== 200) return events.map(() => mapped(answer, events.length))
        return JSON.parse(answer.body).map((word) => meaning[word]())
      },
    }
  }

  function withTasks({ name: sub, keepsOrder }) {
    return {
      name: sub,
      capabilities: { keepsOrder, asynchronous: true },
      async deliver(events, { signal }) {
        const answer = await post(sub, `/${sub}`, events.map(sent), signal)
        if (answer.status !== 200) return events.map(() => mapped(answer, events.length))
        return { parked: JSON.stringify([JSON.parse(answer.body).task, events.length]) }
      },
      async poll(handles, { signal }) {
        const asked = handles.map((handle) => JSON.parse(handle))
        const ids = asked.map(([id]) => id)
        const answer = await post(sub, `/${sub}/poll`, ids, signal)
        if (answer.status !== 200) throw new Error(`poll answered ${answer.status}`)
        return JSON.parse(answer.body).map((state, index) => ofTask(state, asked[index][1]))
      },
    }
  }

  function ofTask(state, items) {
    if (state === 'running') return undefined
    if (state === 'succeeded') return delivered()
    return state === 'unknown' || items > 1 ? split() : meaning.rejected()
  }

  /** Simple, as many are: what goes wrong on the way is thrown. */
  function mail({ name: sub }) {
    return {
      name: sub,
      capabilities: { ledger: true },
      async deliver(events, { signal, sending }) {
        const done = []
        for (const event of events) {
          await sending(event)
          const answer = await post(sub, `/${sub}`, [sent(event)], signal)
          if (answer.status === 200) done.push(meaning[JSON.parse(answer.body)[0]]())
          else done.push(mapped(answer, 1, true))
        }
        return done
      },
    }
  }

  return (sub) => (sub.effects ? mail(sub) : sub.tasks ? withTasks(sub) : plain(sub))
}

function sent(event) {
  return {
    pos: String(event.position),
    aggregate: `${event.aggregateType}/${event.aggregateId}`,
    payload: event.payload,
  }
}

function call({ agent, port, name, cid }, path, body, signal) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-worker': name, 'x-call': cid }
    const to = { host: '127.0.0.1', port, path, method: 'POST' }
    const request = httpRequest({ ...to, headers, agent, signal }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status, headers } = response
        resolve({ status, headers, body: Buffer.concat(chunks).toString() })
      })
    })
    request.on('error', reject)
    request.end(JSON.stringify(body))
  })
}
