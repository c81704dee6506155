/**
 * Requests at a fixed rate: of four, one edits a document, two read one, one searches. Every second
 * edit is followed through /search, asked every 10 ms on top, until a hit shows it. The clock starts
 * with the answer to the edit.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { makeDocuments, openClient, signIn } from '../http.mjs'
import { hostMs } from '../numbers.mjs'

const pollMs = 10
const giveUpMs = 30_000
const documentCount = 400

export async function play(_system, { api, perSecond, samples, warmSamples }) {
  const client = openClient(api, { connections: 32 })
  const token = await signIn(client, 'ada')
  const documents = await makeDocuments(client, token, documentCount)
  const waits = []
  const answers = []
  const watching = []
  const warm = warmSamples * 8
  const requests = warm + samples * 8
  let warmMs = hostMs()
  let dueMs = hostMs()
  for (let n = 0; n < requests; n++) {
    // A cold start at full speed would queue up what only warm processes can take.
    dueMs += (n < warm ? 2_000 : 1_000) / perSecond
    if (dueMs > hostMs()) await pause(dueMs - hostMs())
    if (n === warm) warmMs = hostMs()
    watching.push(requestOf(n))
  }
  await Promise.all(watching)
  const reachedPerSecond = (samples * 8) / ((hostMs() - warmMs) / 1_000)
  client.close()
  return { waits: waits.slice(warmSamples), answers, reachedPerSecond }

  function requestOf(n) {
    if (n % 4 === 0) return edit(n)
    if (n % 4 === 2) return client.ask('GET', '/api/v2/search?q=document+about&limit=10', { token })
    const { id } = documents[(n * 7) % documentCount]
    return client.ask('GET', `/api/v2/documents/${id}`, { token })
  }

  async function edit(n) {
    const document = documents[(n / 4) % documentCount]
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
    if (n % 8 === 0) waits.push(await untilFound(document, edited))
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
