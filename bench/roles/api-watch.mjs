/**
 * Edits at a fixed rate; every few of them is followed through /search, asked every 10 ms, until a
 * hit shows this version. The clock starts with the answer to the edit.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { makeDocuments, openClient, signIn } from '../http.mjs'
import { hostMs } from '../numbers.mjs'

const pollMs = 10
const giveUpMs = 30_000
const documentCount = 400

export async function play(_system, { api, perSecond, samples, watchEvery, warmSamples }) {
  const client = openClient(api, { connections: 32 })
  const token = await signIn(client, 'ada')
  const documents = await makeDocuments(client, token, documentCount)
  const waits = []
  const answers = []
  const watching = []
  const edits = (samples + warmSamples) * watchEvery
  const startedMs = hostMs()
  for (let n = 0; n < edits; n++) {
    const dueMs = startedMs + (n / perSecond) * 1_000
    if (dueMs > hostMs()) await pause(dueMs - hostMs())
    watching.push(one(n))
  }
  await Promise.all(watching)
  const reachedPerSecond = edits / ((hostMs() - startedMs) / 1_000)
  client.close()
  return { waits: waits.slice(warmSamples), answers, reachedPerSecond }

  async function one(n) {
    const document = documents[n % documentCount]
    // An edit of a document waits for the one before it, which is seconds away.
    const before = document.busy
    document.busy = (async () => {
      await before
      const word = `edit${n}x`
      const body = { title: `Document about ${word}` }
      const askedMs = hostMs()
      const { id, version } = document
      const answer = await client.ask('PATCH', `/api/v2/documents/${id}`, { token, version, body })
      document.version = answer.version
      answers.push(hostMs() - askedMs)
      return { word, answeredMs: hostMs() }
    })()
    const edited = await document.busy
    if (n % watchEvery === 0) waits.push(await untilFound(document, edited))
  }

  async function untilFound({ id }, { word, answeredMs }) {
    for (let polls = 0; hostMs() - answeredMs < giveUpMs; polls++) {
      const { hits } = await client.ask('GET', `/api/v2/search?q=${word}&limit=1`, { token })
      const [hit] = hits
      if (hit?.id === id && hit.document.title.endsWith(word)) return hostMs() - answeredMs
      const dueMs = answeredMs + (polls + 1) * pollMs
      if (dueMs > hostMs()) await pause(dueMs - hostMs())
    }
    throw new Error(`${word} was not found within ${giveUpMs} ms`)
  }
}
