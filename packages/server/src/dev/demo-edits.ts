/** Somebody works on the demo's documents: one small edit every few seconds, as long as it runs. */
import type { Demo, DemoRecord } from './demo.ts'

const everyMs = 4_000

export interface Edits {
  stop(): Promise<void>
}

export function keepEditing({ client, documents }: Demo): Edits {
  const edit = async ({ id, owner }: DemoRecord) => {
    const found = await client.ask<Edited>(owner, 'GET', `/documents/${id}`)
    const reads = Number(found.customFields.reads ?? 0) + 1
    const body = { customFields: { ...found.customFields, reads } }
    await client.ask(owner, 'PATCH', `/documents/${id}`, { version: found.version, body })
  }
  let running = Promise.resolve()
  let turn = 0
  const timer = setInterval(() => {
    const next = documents[turn++ % documents.length]
    // Whoever tries the demo may have changed or deleted it meanwhile: then the next one is edited.
    if (next !== undefined) running = running.then(() => edit(next)).catch(() => {})
  }, everyMs)
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}

interface Edited {
  readonly version: string
  readonly customFields: Readonly<Record<string, unknown>>
}
