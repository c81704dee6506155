// The only place that talks to the server: tokens, problems, and the questions the page asks.

const kept = 'hermod-token'
let token = sessionStorage.getItem(kept)
let person

/** What the server answered with, when it was not what was wanted. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `The server answered ${status}.`)
    this.status = status
    this.code = problem?.code
  }
}

export const isSignedIn = () => token !== null

export function useToken(value) {
  token = value
  if (value === null) sessionStorage.removeItem(kept)
  else sessionStorage.setItem(kept, value)
}

/** Under npm start: become one of the demo people. */
export async function becomeDemoPerson(name) {
  person = name
  const answer = await call('POST', 'dev/sign-in', { body: { person: name }, again: true })
  token = answer.body.token
}

export const ask = async (path, options) => (await call('GET', path, options)).body

/** Answers with the document and how long the commit took. */
export async function writeDocument(fields) {
  const startedMs = performance.now()
  const { body } = await call('POST', 'documents', { body: fields })
  return { document: body, answeredMs: performance.now(), tookMs: performance.now() - startedMs }
}

export const syncOf = (id, signal) => ask(`documents/${encodeURIComponent(id)}/sync`, { signal })

export async function search({ query, index, filters, limit, signal }) {
  const parameters = new URLSearchParams({ q: query, index, limit: String(limit) })
  for (const facet of ['product', 'docType', 'status']) parameters.append('facets', facet)
  for (const [field, values] of filters) {
    for (const value of values) parameters.append('filter', `${field}:${value}`)
  }
  return ask(`search?${parameters}`, { signal })
}

async function call(method, path, { body, signal, again = false } = {}) {
  const headers = { accept: 'application/json' }
  if (token !== null) headers.authorization = `Bearer ${token}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const response = await fetch(`api/v2/${path}`, {
    method,
    headers,
    signal,
    cache: 'no-store',
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = await response.json().catch(() => undefined)
  if (response.ok) return { body: answer }
  // A server that was started again has new keys: sign in once more, then repeat.
  if (response.status === 401 && person !== undefined && !again) {
    token = null
    await becomeDemoPerson(person)
    return call(method, path, { body, signal, again: true })
  }
  throw new Refusal(response.status, answer)
}
