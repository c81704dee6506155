// The platform's own indexes, rebuilt from the database and compared with it: what the events carried
// is what the source says, field by field.

import { expect, it } from 'vitest'
import { createDraft, createPublished, ok } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
const by = { actor: 'ada' }

it('documents and drafts are what the database says, before and after a rebuild', async () => {
  await server.work()
  for (let n = 0; n < 5; n++) {
    const { id } = await createPublished(server, 'ada', { title: `Plan ${n}`, tags: ['one'] })
    const body = { content: `More of ${n}` }
    await ok(server, 'PATCH', `/api/v2/documents/${id}`, { as: 'ada', version: 1, body })
    await createDraft(server, 'ada', { title: `Draft ${n}` })
  }
  await server.caughtUp()
  const { outbox, search } = server.platform
  const end = async (id: bigint) => {
    const { state, error, result } = await outbox.journeys.wait(id)
    expect({ state, error }).toEqual({ state: 'succeeded', error: null })
    return result
  }
  const clean = { source: 5, indexed: 5, missing: 0, orphaned: 0, stale: 0 }
  for (const index of ['documents', 'drafts'] as const) {
    const before = await search.generations(index)
    expect(await end((await outbox.verify(index, {}, by)).id)).toMatchObject(clean)
    const rebuilt = await end((await outbox.rebuild(index, {}, by)).id)
    expect(rebuilt).toMatchObject({ documents: 5, rejected: 0, former: before[0]?.id })
    expect(await end((await outbox.verify(index, { repair: true }, by)).id)).toMatchObject(clean)
  }
  const found = await server.ask('GET', '/api/v2/search?q=plan', { as: 'ada' })
  expect(found.json()).toMatchObject({ total: 5 })
})
