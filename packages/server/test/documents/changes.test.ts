// What the audit trail keeps of a change, and what becomes the payload of an event.

import { describe, expect, it } from 'vitest'
import { fieldChanges } from '../../src/documents/changes.ts'
import type { Document } from '../../src/documents/document.ts'
import { payloadBytesMax, payloadOf } from '../../src/documents/search-document.ts'
import { searchDefinition } from '../../src/search-definition.ts'

const ada = { id: '1', displayName: 'Ada' }
const at = new Date('2026-11-15T08:00:00.123Z')
const base: Document = {
  id: 'd',
  version: '2',
  status: 'In-Review',
  title: 'T',
  docType: 'RFC',
  product: 'Labs',
  docNumber: 7,
  summary: 'S',
  content: 'secret text',
  contentHash: 'h1',
  tags: ['a'],
  customFields: { team: 'Search' },
  owners: [ada],
  contributors: [],
  approvers: [],
  authors: [],
  approvals: [],
  workspaceProvider: 'local',
  providerFileId: 'd',
  createdBy: ada,
  lastModifiedBy: ada,
  createdAt: at,
  modifiedAt: at,
  publishedAt: at,
}

describe('field changes', () => {
  it('name each field that differs, from → to, and no other', () => {
    const after = { ...base, title: 'U', tags: [], customFields: { team: 'Rank', size: 3 } }
    expect(fieldChanges(base, after)).toEqual({
      title: { from: 'T', to: 'U' },
      tags: { from: ['a'], to: null },
      'customFields.team': { from: 'Search', to: 'Rank' },
      'customFields.size': { from: null, to: 3 },
    })
    expect(fieldChanges(base, { ...base, version: '3', modifiedAt: new Date() })).toEqual({})
  })

  it('keep content as hash and length, never as text', () => {
    const changes = fieldChanges(base, { ...base, content: 'other', contentHash: 'h2' })
    expect(changes).toEqual({
      content: { from: { hash: 'h1', length: 11 }, to: { hash: 'h2', length: 5 } },
    })
    expect(JSON.stringify(fieldChanges(base, undefined))).not.toContain('secret')
  })

  it('tell of decisions by person', () => {
    const approval = { personId: '9', decision: 'approved', comment: 'yes', decidedAt: at } as const
    expect(fieldChanges(base, { ...base, approvals: [approval] })).toEqual({
      'approvals.9': { from: null, to: { decision: 'approved', comment: 'yes' } },
    })
  })

  it('of a creation and a deletion mirror each other', () => {
    const made = Object.keys(fieldChanges(undefined, base))
    expect(Object.keys(fieldChanges(base, undefined))).toEqual(made)
    expect(made).toEqual(expect.arrayContaining(['title', 'docKey', 'owners', 'content']))
  })
})

describe('the payload of an event', () => {
  it('has declared fields only, and the people who may find it', () => {
    const payload = payloadOf({ ...base, contributors: [{ id: '2', displayName: 'Bo' }] })
    const known = Object.keys(searchDefinition.fields)
    expect(Object.keys(payload ?? {}).filter((field) => !known.includes(field))).toEqual([])
    expect(payload).toMatchObject({ docKey: 'Labs-007', people: ['1', '2'], ownerNames: ['Ada'] })
  })

  it('of a draft leaves out what it has not', () => {
    const draft = { ...base, status: 'WIP' as const, docNumber: null, publishedAt: null }
    expect(payloadOf(draft)).not.toHaveProperty('docKey')
    expect(payloadOf(draft)).not.toHaveProperty('publishedAt')
  })

  it('is left out above its bound, counted in bytes of JSON', () => {
    expect(payloadOf({ ...base, content: 'x'.repeat(payloadBytesMax + 1) })).toBeUndefined()
    // Three bytes each, and six for a control character.
    expect(payloadOf({ ...base, content: '€'.repeat(70_000) })).toBeUndefined()
    expect(payloadOf({ ...base, content: '\u0001'.repeat(40_000) })).toBeUndefined()
    expect(payloadOf({ ...base, content: 'x'.repeat(190_000) })).toBeDefined()
  })
})
