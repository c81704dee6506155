// Many at once on one thing: edits of one document, publishing into one product, deciding about one
// document. Nothing is lost, nothing is counted twice.

import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { sized } from '../../../../test/support/sized.ts'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, type Made, ok, personId } from './people.ts'

const server = useServer()

/** `clients` of them take turns until all the work is done. */
async function share(clients: number, jobs: number, job: (n: number) => Promise<void>) {
  let next = 0
  const client = async () => {
    for (let mine = next++; mine < jobs; mine = next++) await job(mine)
  }
  await Promise.all(Array.from({ length: clients }, client))
}

const edits = sized(250, 1_000)

it(`50 clients make ${edits} edits of one document, again and again on 412`, async () => {
  const made = await createPublished(server, 'ada')
  const authorization = `Bearer ${await server.token('ada')}`
  const url = `/api/v2/documents/${made.id}`
  let known = made.version
  let stale = 0
  const began = performance.now()
  const edit = async (n: number) => {
    for (let tries = 0; ; tries++) {
      const asked = performance.now()
      const answer = await server.app.inject({
        method: 'PATCH',
        url,
        payload: { title: `Edit ${n}` },
        headers: { authorization, 'if-match': `"${known}"` },
      })
      const { version, currentVersion = version } = answer.json()
      if (BigInt(currentVersion) > BigInt(known)) known = currentVersion
      if (answer.statusCode === 200) return
      expect(answer.statusCode, answer.body).toBe(412)
      stale++
      // As polite clients do: further apart the slower the answers, and the more often they met somebody.
      await pause(Math.random() * (performance.now() - asked) * 2 ** Math.min(tries, 4))
    }
  }
  await share(50, edits, edit)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  const [counts] = await server.db.query(
    `select (select version::int from hermod.document where id = $1::text::uuid) as version,
       (select count(*)::int from hermod.document_modification_log where document_id = $1::text::uuid) as log,
       (select count(distinct version)::int from hermod.document_modification_log where document_id = $1::text::uuid) as versions,
       (select count(*)::int from outbox.event where aggregate_id = $1) as events`,
    [made.id],
  )
  const all = edits + 1
  expect(counts).toEqual({ version: all, log: all, versions: all, events: all })
  await server.work()
  await server.caughtUp()
  const last = await ok(server, 'GET', url, { as: 'ada' })
  const stored = await server.platform.search.get('documents', made.id)
  expect(stored?.document).toMatchObject({ version: String(all), title: last.title })
  console.log(`${edits} edits by 50 clients in ${seconds} s: ${stale} answers were 412`)
}, 90_000)

it('100 drafts are published at once: numbers 1 to 100, none twice, none left out', async () => {
  const drafts: Made[] = []
  await share(10, 100, async (n) => {
    drafts.push(await createDraft(server, 'ada', { product: 'Dense', title: `Draft ${n}` }))
  })
  const authorization = `Bearer ${await server.token('ada')}`
  const answers = await Promise.all(
    drafts.map(({ id }) =>
      server.app.inject({
        method: 'POST',
        url: `/api/v2/reviews/${id}`,
        headers: { authorization, 'if-match': '"1"' },
      }),
    ),
  )
  const numbers = answers.map((answer) => answer.json<{ docNumber: number }>().docNumber)
  expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
})

it('ten approvers decide at once: every decision counts, the last makes it Approved', async () => {
  const names = Array.from({ length: 10 }, (_, n) => `approver${n}`)
  const approvers: string[] = []
  for (const name of names) approvers.push(await personId(server, name))
  const { id } = await createPublished(server, 'ada', { approvers })
  const states = await Promise.all(
    names.map((as) =>
      ok<{ status: string }>(server, 'POST', `/api/v2/approvals/${id}`, {
        as,
        body: {},
        headers: { 'if-match': '*' },
      }),
    ),
  )
  expect(states.filter(({ status }) => status === 'Approved')).toHaveLength(1)
  const whole = await ok<{ status: string; approvals: object[]; version: string }>(
    ...([server, 'GET', `/api/v2/documents/${id}`, { as: 'ada' }] as const),
  )
  expect(whole).toMatchObject({ status: 'Approved', version: '11' })
  expect(whole.approvals).toHaveLength(10)
})
