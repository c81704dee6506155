// The catalogue of errors, its page in the docs, and the way from SQL to a coded error.

import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { catalogue, fromSqlState, HermodError, type HermodErrorCode } from '../../src/errors.ts'

const page = fileURLToPath(new URL('../../../../docs/reference/errors.md', import.meta.url))
const codes = Object.keys(catalogue) as HermodErrorCode[]

const introduction = `# Errors

Every error Hermod gives you is a \`HermodError\`: a \`code\` for programs, a \`message\` that names the field
and the bound, and a \`fix\` that says what to do next; \`details\` holds the facts, \`cause\` the error below.
The same codes come from SQL (\`select outbox.emit(…)\`): SQLSTATE class \`HM\`, message \`HMD_CODE: text\`.

This page is made from \`packages/hermod/src/error-catalogue.ts\`; \`npx vitest run errors -u\` renews it.

| code | what it says | what to do |
|---|---|---|
`

describe('the catalogue', () => {
  it('is exactly what docs/reference/errors.md lists', async () => {
    const rows = codes.map((code) => `| \`${code}\` | ${catalogue[code].says} | ${catalogue[code].fix} |`)
    await expect(`${introduction}${rows.join('\n')}\n`).toMatchFileSnapshot(page)
  })

  it('has a sentence and a next step for every code', () => {
    for (const code of codes) {
      expect(code).toMatch(/^HMD_[A-Z]+(_[A-Z]+)*$/)
      for (const text of Object.values(catalogue[code])) {
        expect(text, code).toMatch(/^[A-Z][^|\n]*\.$/)
      }
    }
  })
})

describe('a HermodError', () => {
  it('carries code, field, fix, details and cause, and gives away neither stack nor cause', () => {
    const cause = new Error('secret')
    const options = { field: 'events[3].type', details: { index: 3 }, cause }
    const error = new HermodError('HMD_EVENT_INVALID', 'events[3].type must be a string', options)
    expect(error).toMatchObject({ name: 'HermodError', code: 'HMD_EVENT_INVALID', ...options })
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'HMD_EVENT_INVALID',
      message: 'events[3].type must be a string',
      field: 'events[3].type',
      fix: catalogue.HMD_EVENT_INVALID.fix,
      details: { index: 3 },
    })
  })

  it('has no empty fields', () => {
    const error = new HermodError('HMD_STANDBY', 'x', { fix: 'do that' })
    expect(Object.keys(error.toJSON())).toEqual(['code', 'message', 'fix'])
    expect('field' in error).toBe(false)
    expect('cause' in error).toBe(false)
    expect(error.fix).toBe('do that')
  })
})

describe('an error raised by our SQL', () => {
  const raised = (code: string, message: string) => Object.assign(new Error(message), { code })

  it('becomes a HermodError with the original as cause', () => {
    const original = Object.assign(raised('HM001', 'HMD_RESTORED: the system identifier\nchanged'), {
      detail: 'was 7, is 8',
      hint: 'Run hermod rebase.',
    })
    expect(fromSqlState(original)).toMatchObject({
      code: 'HMD_RESTORED',
      message: 'the system identifier\nchanged',
      fix: 'Run hermod rebase.',
      details: { sqlState: 'HM001', detail: 'was 7, is 8' },
      cause: original,
    })
  })

  it('is found inside the wrapper of a client library', () => {
    const wrapper = new Error('Failed query', { cause: raised('HM002', 'HMD_ISOLATION: no') })
    expect(fromSqlState(wrapper)).toMatchObject({ code: 'HMD_ISOLATION', cause: wrapper })
  })

  it('stays as it is when it is not ours', () => {
    const loop: { cause?: unknown } = {}
    loop.cause = loop
    const foreign = [
      raised('25P02', 'current transaction is aborted'),
      raised('23505', 'HMD_RESTORED: made up'),
      raised('HM001', 'HMD_FROM_THE_FUTURE: x'),
      raised('HM001', 'HMD_toString: x'),
      raised('HM001', 'no code'),
      loop,
      'a string',
      null,
      undefined,
    ]
    for (const error of foreign) expect(fromSqlState(error)).toBe(error)
  })
})
