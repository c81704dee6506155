// In whatever order upserts and deletions arrive, alone or in batches: the newest version is what
// the index shows, in every engine. The version is the log position, so no two are equal for one
// document.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { everyEngine, type OpenedEngine } from '../support/every-engine.ts'

const db = useDatabase({ empty: true })

const index = `versions_${Date.now().toString(36)}`
const definition = { fields: { title: { kind: 'text' } } } as const
const ids = ['a', 'b', 'c']
const write = fc.record({ id: fc.constantFrom(...ids), deletes: fc.boolean() })
/** Written in this order, but applied in any other and in batches of any size. */
const history = fc.array(write, { minLength: 1, maxLength: 12 }).chain((writes) => {
  const numbered = writes.map((one, at) => ({ ...one, position: at + 1 }))
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 12, maxLength: 12 })
  const arrivals = fc.shuffledSubarray(numbered, { minLength: numbered.length })
  return fc.record({ numbered: fc.constant(numbered), arrivals, sizes })
})

type Numbered = { id: string; deletes: boolean; position: number }

let round = 0

if (everyEngine.opensearch === undefined) {
  it.skip('OpenSearch needs HERMOD_TEST_OPENSEARCH, the URL of a node')
}

for (const [name, open] of Object.entries(everyEngine)) {
  const runs = name === 'postgres' ? 100 : 20
  describe(`an old version in ${name}`, () => {
    let place: OpenedEngine
    beforeAll(async () => {
      place = await open({ pool: db.pool, index })
      await place.engine.ensureIndex(index, definition)
    })
    afterAll(() => place?.stop())

    /** Sends each batch as the sink does: one call of upserts, one of deletions. */
    async function arrive(arrivals: readonly Numbered[], sizes: readonly number[], mark: string) {
      const version = ({ position }: Numbered) => BigInt(round) * 1_000n + BigInt(position)
      const rest = [...arrivals]
      for (const size of sizes) {
        const part = rest.splice(0, size)
        const upserts = part
          .filter(({ deletes }) => !deletes)
          .map((w) => ({
            id: mark + w.id,
            version: version(w),
            json: `{"title":"t${w.position}"}`,
          }))
        const deletions = part.filter(({ deletes }) => deletes).map((w) => ({ id: mark + w.id, version: version(w) }))
        await inTurn([() => place.engine.upsert(index, upserts), () => place.engine.delete(index, deletions)])
      }
    }

    /** Where the server does not refuse older versions, the owner of a lane calls alone. */
    async function inTurn(calls: readonly (() => Promise<unknown>)[]): Promise<void> {
      const fenced = place.engine.capabilities.externalVersion === true
      if (fenced) await Promise.all(calls.map((call) => call()))
      else for (const call of calls) await call()
    }

    async function expectNewest(numbered: readonly Numbered[], mark: string, generation?: string) {
      const read = generation === undefined ? {} : { generation }
      for (const id of ids) {
        const last = numbered.filter((one) => one.id === id).at(-1)
        const expected = last === undefined || last.deletes ? undefined : `t${last.position}`
        const got = await place.engine.get(index, mark + id, read)
        expect(got?.document.title).toBe(expected)
      }
    }

    it('never wins, whatever the order of arrival', async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ numbered, arrivals, sizes }) => {
          const mark = `r${++round}-`
          await arrive(arrivals, sizes, mark)
          await expectNewest(numbered, mark)
        }),
        { numRuns: runs },
      )
    })

    it('never wins in a generation that is filled while events arrive', async () => {
      const { id: generation } = await place.engine.createGeneration(index, definition)
      await fc.assert(
        fc.asyncProperty(history, fc.nat(12), async ({ numbered, arrivals, sizes }, at) => {
          const mark = `g${++round}-`
          const position = BigInt(round) * 1_000n + BigInt(at)
          const states = new Map(numbered.slice(0, at).map((one) => [one.id, one]))
          const rows = [...states.values()]
            .filter(({ deletes }) => !deletes)
            .map((one) => ({
              id: mark + one.id,
              version: position,
              json: `{"title":"t${one.position}"}`,
            }))
          await inTurn([() => arrive(arrivals, sizes, mark), () => place.engine.upsert(index, rows, { generation })])
          await expectNewest(numbered, mark, generation)
        }),
        { numRuns: Math.ceil(runs / 3) },
      )
    })
  })
}
