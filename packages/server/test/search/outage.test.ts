// The index in a database of its own, behind a connection that is cut under writes: every write
// answers as before, and once it is back the index equals the database. HERMOD_OUTAGE_SECONDS=60 for
// the long one.

import type { AddressInfo } from 'node:net'
import { createConnection, createServer, type Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { createDraft, createPublished, ok } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const outageMs = Number(process.env.HERMOD_OUTAGE_SECONDS ?? 3) * 1_000

/** A connection in between that can be cut and mended. */
class Cable {
  readonly #sockets = new Set<Socket>()
  #cut = false
  readonly #server = createServer((near) => this.#join(near))
  target: () => URL = () => new URL('postgres://127.0.0.1:1')

  async open(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  #join(near: Socket): void {
    if (this.#cut) return void near.destroy()
    const { hostname, port } = this.target()
    const far = createConnection({ host: hostname, port: Number(port) })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  }

  cut(): void {
    this.#cut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#cut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}

const cable = new Cable()
const cablePort = await cable.open()
afterAll(() => cable.close())

const index = useDatabase({ empty: true })
const server = useServer({
  // Read when the server is assembled, after the databases were made.
  get searchDatabaseUrl() {
    const url = new URL(index.url)
    cable.target = () => new URL(index.url)
    url.host = `127.0.0.1:${cablePort}`
    return url.href
  },
})

/** Writes one after the other until told to end; how long each took. */
async function writeUntil(ends: () => boolean): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; !ends(); n++) {
    const began = performance.now()
    const made = await createPublished(server, 'ada', { title: `Written ${n}` })
    took.push(performance.now() - began)
    const url = `/api/v2/documents/${made.id}`
    if (n % 3 === 0) {
      await ok(server, 'PATCH', url, { as: 'ada', version: 1, body: { content: 'More' } })
    }
    if (n % 5 === 0) {
      const version = n % 3 === 0 ? 2 : 1
      await ok(server, 'DELETE', url, { as: 'ada', version }, 204)
    }
    await createDraft(server, 'ada', { title: `Draft ${n}` })
  }
  return took.sort((a, b) => a - b)
}

it('a cut connection to the index costs writers nothing and loses nothing', async () => {
  await server.work()
  const first = await createPublished(server, 'ada', { title: 'Before' })
  await server.caughtUp()
  const usual = await writeUntil(afterMs(500))
  cable.cut()
  const during = await writeUntil(afterMs(outageMs))
  const answer = await server.ask('GET', '/api/v2/search?q=before', { as: 'ada' })
  expect(answer.statusCode).toBe(503)
  const sync = await server.ask('GET', `/api/v2/documents/${first.id}/sync`, { as: 'ada' })
  expect(sync.json()).toMatchObject({ searchable: false, indexes: [{ current: null }, {}] })
  cable.mend()
  await server.caughtUp()
  const middle = (list: number[]) => list[Math.floor(list.length / 2)] ?? 0
  console.log(
    `${during.length} documents in ${outageMs / 1_000} s without an index: ${middle(during).toFixed(1)} ms each, ${middle(usual).toFixed(1)} ms before`,
  )
  // Generous, because the machine is shared: an outage that writers felt would cost them seconds.
  expect(middle(during)).toBeLessThan(middle(usual) * 3 + 20)
  for (const name of ['documents', 'drafts'] as const) {
    expect(await indexed(name), name).toEqual(await stored(name))
  }
  expect(await server.db.query(`select to_regnamespace('search')::text as here`)).toEqual([{ here: null }])
  const { subscriptions } = await server.platform.outbox.stats()
  expect(subscriptions.map(({ dead, retrying }) => [dead, retrying])).toEqual(subscriptions.map(() => [0, 0]))
}, 240_000)

function afterMs(ms: number): () => boolean {
  const ends = performance.now() + ms
  return () => performance.now() > ends
}

async function indexed(name: string): Promise<Record<string, unknown>> {
  const { search } = server.platform
  const found: Record<string, unknown> = {}
  let after: string | undefined
  for (;;) {
    const page = await search.scan(name, { limit: 500, ...(after !== undefined && { after }) })
    for (const { id } of page.documents) {
      found[id] = (await search.get(name, id))?.document.version
    }
    after = page.next
    if (after === undefined) return found
  }
}

async function stored(name: 'documents' | 'drafts'): Promise<Record<string, unknown>> {
  const rows = await server.db.query<{ id: string; version: string }>(
    `select id::text, version::text from hermod.document where (published_at is null) = $1`,
    [name === 'drafts'],
  )
  return Object.fromEntries(rows.map(({ id, version }) => [id, version]))
}
