// A table that is wide, long or full of commas is refused or read in a time that grows with its size, and never at the cost of others.

import { describe, expect, it } from 'vitest'
import { useImports } from './use-imports.ts'

const { send, counts } = useImports()
const csv = (text: string) => send({ text, type: 'text/csv' })
const needed = 'title,docType,product'

describe('a header', () => {
  const names = (count: number, name: (at: number) => string) =>
    [needed, ...Array.from({ length: count }, (_, at) => name(at))].join(',')

  it.each([
    ['15,000 own fields', names(15_000, (at) => `customFields.f${at}`)],
    ['40,000 own fields', names(40_000, (at) => `customFields.f${at}`)],
    ['40,000 unknown names', names(40_000, (at) => `column number ${at}`)],
    ['40,000 times the same', names(40_000, () => 'title')],
    ['a million commas', `${needed}${','.repeat(1_000_000)}`],
    ['one name of three million letters', `${needed},${'x'.repeat(3_000_000)}`],
  ])('of %s is refused at once', async (_, header) => {
    const before = await counts()
    const startedMs = performance.now()
    const answer = await csv(`${header}\n${'a,'.repeat(50)}\n`)
    expect(answer.statusCode, answer.body.slice(0, 300)).toBeGreaterThanOrEqual(400)
    expect(answer.statusCode).toBeLessThan(500)
    expect(answer.body.length, 'the answer is short').toBeLessThan(20_000)
    // Ten seconds and more it was; quadratic again would be far above this even on a busy machine.
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(await counts()).toEqual(before)
  })

  it('of 1,000 columns is the most there may be', async () => {
    const wide = (count: number) => names(count - 3, (at) => `customFields.f${at}`)
    const row = (count: number) => `a,RFC,Wide${','.repeat(count - 3)}`
    expect((await csv(`${wide(1_000)}\n${row(1_000)}\n`)).statusCode).toBe(201)
    const refused = await csv(`${wide(1_001)}\n${row(1_001)}\n`)
    expect(refused.json()).toMatchObject({
      status: 400,
      detail: expect.stringContaining('line 1 has more than 1,000 columns'),
    })
  })
})

it('a row of a million commas refuses the file with its line', async () => {
  const answer = await csv(`${needed}\na,RFC,Labs\n${','.repeat(1_000_000)}\nb,RFC,Labs\n`)
  expect(answer.json()).toMatchObject({
    status: 400,
    detail: expect.stringContaining('line 3 has more than 1,000 columns'),
  })
})
