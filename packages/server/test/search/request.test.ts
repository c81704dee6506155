// What a search asks for, read from its parameters; what cannot be applied is refused by name.

import { describe, expect, it } from 'vitest'
import type { Problem } from '../../src/problems.ts'
import { facetsOf, filtersOf, sortOf } from '../../src/search/request.ts'

function refusal(work: () => unknown): Problem {
  try {
    work()
  } catch (error) {
    return error as Problem
  }
  throw new Error('it was not refused')
}

describe('filters', () => {
  it('of one field are or, of several are and; values may hold anything', () => {
    expect(filtersOf(['status:Approved', 'status:In-Review', 'product:a:b>=c'])).toEqual({
      status: { anyOf: ['Approved', 'In-Review'] },
      product: { anyOf: ['a:b>=c'] },
    })
  })

  it('bound numbers and times', () => {
    const time = '2026-01-01T00:00:00Z'
    expect(filtersOf([`modifiedAt>=${time}`, 'modifiedAt<2027-01-01T00:00:00+02:00'])).toEqual({
      modifiedAt: { from: time, below: '2027-01-01T00:00:00+02:00' },
    })
    expect(filtersOf(['docNumber>5', 'docNumber<=9'])).toEqual({ docNumber: { above: 5, to: 9 } })
  })

  it.each([
    ['nonsense', 'must be field:value'],
    ['', 'must be field:value'],
    ['secret:x', 'must be one of'],
    ['people:17', 'must be one of'],
    ['title:x', 'must be one of'],
    ['status>=x', 'must be one of'],
    ['modifiedAt>=yesterday', 'is not a date'],
    ['modifiedAt>=2026-01-01T00:00:00', 'is not a date'],
    ['docNumber>=1e9', 'is not a number'],
    ['__proto__:x', 'must be field:value'],
    ['constructor:x', 'must be one of'],
  ])('%s is refused', (filter, says) => {
    const problem = refusal(() => filtersOf(['status:Approved', filter]))
    expect(problem.code).toBe('HMD_REQUEST_INVALID')
    expect(problem.errors).toEqual([{ pointer: '?filter/1', detail: expect.stringContaining(says) }])
  })
})

it('facets and sorting take a list or a comma', () => {
  expect(facetsOf(['status,product', 'tags'])).toEqual(['status', 'product', 'tags'])
  expect(sortOf(['-modifiedAt,docNumber'])).toEqual([
    { field: 'modifiedAt', direction: 'descending' },
    { field: 'docNumber', direction: 'ascending' },
  ])
  expect(refusal(() => facetsOf(['people'])).errors[0]?.pointer).toBe('?facets')
  expect(refusal(() => sortOf(['title'])).errors[0]?.pointer).toBe('?sort')
})
