// Patterns: exact, everything below a noun, everything.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HermodError } from '../../src/errors.ts'
import { compileFilter, filterToSql, matches, validatePattern } from '../../src/filter.ts'

const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,3}$/)
const types = fc.array(word, { minLength: 2, maxLength: 4 }).map((words) => words.join('.'))
const patterns = fc.oneof(
  types,
  fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => `${words.join('.')}.*`),
  fc.constant('*'),
)

/** LIKE as PostgreSQL reads it, for the escapes we use. */
function like(pattern: string, text: string): boolean {
  const source = pattern.replace(/\\(.)|%|_|[.*+?^${}()|[\]]/g, (part, escaped: string) => {
    if (escaped !== undefined) return escaped
    if (part === '%') return '.*'
    return part === '_' ? '.' : `\\${part}`
  })
  return new RegExp(`^${source}$`, 's').test(text)
}

describe('a pattern', () => {
  it('is exact, noun.* at any depth, or *', () => {
    expect(matches(['document.updated'], 'document.updated')).toBe(true)
    expect(matches(['document.updated'], 'document.updated_twice')).toBe(false)
    expect(matches(['document.*'], 'document.page.added')).toBe(true)
    expect(matches(['document.*'], 'documents.updated')).toBe(false)
    expect(matches(['document.*'], 'document')).toBe(false)
    expect(matches(['document.*'], 'document.')).toBe(false)
    expect(matches(['*'], 'anything.at_all')).toBe(true)
    expect(matches([], 'document.updated')).toBe(false)
  })

  it('is refused when it is anything else', () => {
    const bad = ['', 'document', '*.updated', 'document.**', 'document.*.x', 'Document.*', '.*', 7]
    for (const pattern of [...bad, 'a%.*', 'a.b ', 'a.b\n', `${'a'.repeat(130)}.*`]) {
      expect(validatePattern(pattern), String(pattern)).toBeTypeOf('string')
    }
    for (const pattern of ['*', 'a.*', 'a.b.*', 'a.b', 'a_1.b_2.c']) {
      expect(validatePattern(pattern)).toBeUndefined()
    }
    expect(() => filterToSql(["'; drop table x"])).toThrow(HermodError)
    expect(() => compileFilter({ types: ['*.x'] })).toThrow(HermodError)
  })

  it('means the same in SQL', () => {
    expect(filterToSql(['*', 'a_b.*', 'a_b.c_d'])).toEqual(['%', 'a\\_b._%', 'a\\_b.c\\_d'])
    fc.assert(
      fc.property(fc.array(patterns, { maxLength: 3 }), types, (given, type) => {
        const inSql = filterToSql(given).some((pattern) => like(pattern, type))
        expect(inSql).toBe(matches(given, type))
      }),
      { numRuns: 500 },
    )
  })
})

describe('a compiled filter', () => {
  it('looks at both types, again and again', () => {
    const hears = compileFilter({ types: ['document.*'], aggregates: ['document'] })
    for (let round = 0; round < 2; round++) {
      expect(hears('document.updated', 'document')).toBe(true)
      expect(hears('document.updated', 'draft')).toBe(false)
      expect(hears('draft.updated', 'document')).toBe(false)
    }
  })
})
