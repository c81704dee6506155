// In whatever order upserts and deletions arrive, alone or in batches: the newest version is what
// the index shows. The version is the log position, so no two are equal for one document.

import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { type PostgresSearch, postgresSearch } from '../../src/sinks/search/postgres.ts'

const db = useDatabase({ empty: true })
let engine: PostgresSearch

beforeAll(async () => {
  engine = postgresSearch({ pool: db.pool })
  await engine.ensureIndex('documents', { fields: { title: { kind: 'text' } } })
})

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

/** Sends each batch as the sink does: one call of upserts, one of deletions. */
async function arrive(arrivals: readonly Numbered[], sizes: readonly number[], name: string) {
  const version = ({ position }: Numbered) => BigInt(round) * 1_000n + BigInt(position)
  const rest = [...arrivals]
  for (const size of sizes) {
    const part = rest.splice(0, size)
    const [gone, kept] = [part.filter(({ deletes }) => deletes), part.filter((w) => !w.deletes)]
    await Promise.all([
      engine.upsert(
        'documents',
        kept.map((w) => ({
          ...{ id: name + w.id, version: version(w), json: `{"title":"t${w.position}"}` },
        })),
      ),
      engine.delete(
        'documents',
        gone.map((w) => ({ id: name + w.id, version: version(w) })),
      ),
    ])
  }
}

describe('an old version', () => {
  it('never wins, whatever the order of arrival', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ numbered, arrivals, sizes }) => {
        const name = `r${++round}-`
        await arrive(arrivals, sizes, name)
        for (const id of ids) {
          const last = numbered.filter((one) => one.id === id).at(-1)
          const expected = last === undefined || last.deletes ? undefined : `t${last.position}`
          expect((await engine.get('documents', name + id))?.document.title).toBe(expected)
        }
      }),
      { numRuns: 150 },
    )
  })

  it('never wins in a generation that is filled while events arrive', async () => {
    const { id: generation } = await engine.createGeneration('documents', {
      fields: { title: { kind: 'text' } },
    })
    await fc.assert(
      fc.asyncProperty(history, fc.nat(12), async ({ numbered, arrivals, sizes }, at) => {
        const name = `g${++round}-`
        const loaded = numbered.slice(0, at)
        const position = BigInt(round) * 1_000n + BigInt(at)
        const states = new Map(loaded.map((one) => [one.id, one]))
        const rows = [...states.values()].filter(({ deletes }) => !deletes)
        await Promise.all([
          arrive(arrivals, sizes, name),
          engine.upsert(
            'documents',
            rows.map((one) => ({
              ...{ id: name + one.id, version: position, json: `{"title":"t${one.position}"}` },
            })),
            { generation },
          ),
        ])
        for (const id of ids) {
          const last = numbered.filter((one) => one.id === id).at(-1)
          const expected = last === undefined || last.deletes ? undefined : `t${last.position}`
          const got = await engine.get('documents', name + id, { generation })
          expect(got?.document.title).toBe(expected)
        }
      }),
      { numRuns: 50 },
    )
  })
})
