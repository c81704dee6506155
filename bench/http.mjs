/** A JSON client over kept-alive connections: what a load generator needs and nothing that slows it. */
import { Agent, request } from 'node:http'

export function openClient(url, { connections }) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const { hostname, port } = new URL(url)
  const ask = (method, path, { token, version, body } = {}) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(version && { 'if-match': `"${version}"` }),
        ...(text && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
      }
      const sent = request({ agent, hostname, port, method, path, headers }, (answer) => {
        const parts = []
        answer.on('data', (part) => parts.push(part))
        answer.on('error', reject)
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString()
          if (answer.statusCode < 300) resolve(text === '' ? undefined : JSON.parse(text))
          else reject(new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`))
        })
      })
      sent.on('error', reject)
      sent.end(text)
    })
  return { ask, close: () => agent.destroy() }
}

/** A token of the development sign-in. */
export async function signIn({ ask }, person) {
  const { token } = await ask('POST', '/api/v2/dev/sign-in', { body: { person } })
  return token
}

/** Published documents to work on, `{ id, version }` each. */
export async function makeDocuments({ ask }, token, count) {
  const documents = []
  for (let n = 0; n < count; n++) {
    const body = {
      title: `Document ${n}`,
      docType: 'RFC',
      product: 'Bench',
      summary,
      providerFileId: `file-${n}`,
    }
    const { id, version } = await ask('POST', '/api/v2/documents', { token, body })
    documents.push({ id, version })
  }
  return documents
}

/** About 400 bytes of words. */
export const summary = 'the index follows the database and every change can be found at once '.repeat(6).trim()
