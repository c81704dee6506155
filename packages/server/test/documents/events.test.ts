// The vocabulary is complete: every command, every modification type, every index operation, and
// the subscriptions hear exactly what the table says.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  type Consequence,
  consequences,
  type DocumentCommand,
  effectOn,
  type IndexName,
  indexNames,
  indexOperations,
  modificationTypes,
} from '../../src/events.ts'
import { reactions } from '../../src/reactions.ts'

const lines = Object.entries(consequences) as [DocumentCommand, Consequence][]

describe('the table of commands', () => {
  it('uses every modification type and every index operation', () => {
    const used = new Set(lines.map(([, { modification }]) => modification))
    expect(modificationTypes.filter((type) => !used.has(type))).toEqual([])
    const done = new Set(lines.flatMap(([, { index }]) => index))
    expect(indexOperations.filter((operation) => !done.has(operation))).toEqual([])
  })

  it('has one event per command, named after what happened', () => {
    const events = lines.map(([, { event }]) => event)
    expect(new Set(events).size).toBe(events.length)
    for (const event of events) expect(event).toMatch(/^(draft|document)\.[a-z]+(_[a-z]+)*$/)
  })

  it('changes at least one index with every command, and publishing both', () => {
    expect(lines.filter(([, { index }]) => index.length === 0)).toEqual([])
    expect(consequences.publish.index).toEqual(['index_document', 'delete_draft'])
  })

  it('is what the data model page says', () => {
    const page = new URL('../../../../docs/reference/data-model.md', import.meta.url)
    const rows = readFileSync(page, 'utf8').matchAll(
      /^\| `(\w+)` \| (?:`(\w+)`|–) \| `((?:draft|document)\.\w+)` \| (.*) \|$/gm,
    )
    const told = [...rows].map(([, command = '', modification, event, index = '']) => [
      command,
      { modification: modification ?? null, event, index: index.replaceAll('`', '').split(', ') },
    ])
    expect(Object.fromEntries(told)).toEqual(consequences)
  })

  it('is what the audit trail accepts', () => {
    const sql = readFileSync(new URL('../../migrations/0002_documents.sql', import.meta.url), 'utf8')
    const [, list = ''] = /modification_type in\s*\(([^)]*)\)/.exec(sql) ?? []
    expect(list.split(',').map((word) => word.trim().replaceAll("'", ''))).toEqual([...modificationTypes])
  })
})

describe('what the indexes hear', () => {
  const matches = (patterns: readonly string[], type: string) =>
    patterns.some((one) => one === type || (one.endsWith('.*') && type.startsWith(one.slice(0, -1))))

  it('is every event that changes them', () => {
    for (const { index, types } of reactions) {
      const wanted = lines.map(([, { event }]) => event).filter((event) => effectOn(index, event))
      expect(
        wanted.filter((event) => !matches(types, event)),
        index,
      ).toEqual([])
    }
  })

  it.each<[string, IndexName, string | undefined]>([
    ['document.published', 'documents', 'index'],
    ['document.published', 'drafts', 'delete'],
    ['draft.deleted', 'drafts', 'delete'],
    ['draft.updated', 'documents', undefined],
    ['document.deleted', 'documents', 'delete'],
    ['document.refreshed', 'documents', 'index'],
    ['person.merged', 'documents', undefined],
  ])('%s on %s: %s', (event, index, effect) => {
    expect(effectOn(index, event)).toBe(effect)
  })

  it('has a subscription for every index, documents before drafts', () => {
    expect(reactions.map(({ index }) => index).sort()).toEqual([...indexNames].sort())
    const [documents, drafts] = reactions
    expect(documents?.priority).toBeGreaterThan(drafts?.priority ?? 0)
  })
})
