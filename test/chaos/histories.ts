// What hand-written and generated histories of a chaos run share: the lines, and a subscription of every kind.

export type Entry = Record<string, unknown> & { k: string }

export const subs: Entry[] = [
  { k: 'sub', name: 'webhook', order: 'aggregate', coalesce: 'none' },
  { k: 'sub', name: 'search', order: 'aggregate', coalesce: 'latest' },
  { k: 'sub', name: 'broker', order: 'none', coalesce: 'none', aggregates: ['row'] },
  { k: 'sub', name: 'index', order: 'aggregate', coalesce: 'latest', versions: true },
  { k: 'sub', name: 'mail', order: 'aggregate', coalesce: 'none', effects: true },
  { k: 'sub', name: 'queue', order: 'aggregate', coalesce: 'none', tasks: true },
]
