/** As many edits a second as the server takes: each connection edits documents of its own. */
import { makeDocuments, openClient, signIn, summary } from '../http.mjs'
import { hostMs } from '../numbers.mjs'

export async function play(_system, { api, connections, seconds, warmSeconds }) {
  const client = openClient(api, { connections })
  const token = await signIn(client, 'ada')
  const documents = await makeDocuments(client, token, connections)
  const run = async (untilMs) => {
    const counts = await Promise.all(documents.map((document) => edit(document, untilMs)))
    return counts.reduce((sum, count) => sum + count, 0)
  }
  async function edit(document, untilMs) {
    let count = 0
    for (; hostMs() < untilMs; count++) {
      const { id, version } = document
      const body = { summary: `${summary} ${version}` }
      const answer = await client.ask('PATCH', `/api/v2/documents/${id}`, { token, version, body })
      document.version = answer.version
    }
    return count
  }
  await run(hostMs() + warmSeconds * 1_000)
  const startedMs = hostMs()
  const writes = await run(startedMs + seconds * 1_000)
  const perSecond = (writes / (hostMs() - startedMs)) * 1_000
  client.close()
  return { writes, perSecond }
}
