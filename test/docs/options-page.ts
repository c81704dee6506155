// The options as the source has them: names, defaults and the sentence an error says. Asked from
// outside, by giving nothing and by giving nonsense, so that the rules need no second form.

import { HermodError } from '../../packages/hermod/src/errors.ts'
import { outboxOptions, subscriptionOptions, workerOptions } from '../../packages/hermod/src/options.ts'

export type Option = { readonly name: string; readonly fallback: string; readonly allowed: string }

type Given = Record<string, unknown>
type Read = (given: Given) => object

const pool = { connect: async () => ({}), query: () => {} }
const needed: Record<string, Given> = {
  createOutbox: { pool },
  subscribe: { revision: 1, types: ['*'], sink: () => {}, rate: { perSecond: 1 } },
  start: {},
}
const readers: Record<string, Read> = {
  createOutbox: (given) => outboxOptions(given as never),
  subscribe: (given) => subscriptionOptions('name', given as never),
  start: (given) => workerOptions(given as never),
}

/** What subscriptionOptions adds to what it was given. */
const derived = new Set(['subscribe.name', 'subscribe.ledger'])
const groups = new Set(['retry', 'batch', 'rate', 'retention'])

/** `what` is createOutbox, subscribe or start. */
export function optionsOf(what: string): Option[] {
  const read = readers[what] as Read
  const given = needed[what] as Given
  const all = Object.entries(read(given)).filter(([name]) => !derived.has(`${what}.${name}`))
  return all.flatMap(([name, value]) => {
    const isGiven = Object.hasOwn(given, name)
    if (!groups.has(name)) return [option(read, given, [name], isGiven ? required : value)]
    return Object.entries(value as Given).map(([inner, one]) =>
      option(read, given, [name, inner], isGiven ? undefined : one),
    )
  })
}

const required = Symbol('required')

function option(read: Read, given: Given, path: string[], fallback: unknown): Option {
  return { name: path.join('.'), fallback: shown(fallback), allowed: sentence(read, given, path) }
}

function shown(value: unknown): string {
  if (value === required) return 'required'
  if (value === undefined) return '–'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' ? '{}' : String(value)
}

/** What the error says about nonsense in this place, without what was given. */
function sentence(read: Read, given: Given, [outer = '', inner]: string[]): string {
  const nonsense = inner === undefined ? 'not a value' : { [inner]: 'not a value' }
  try {
    read({ ...given, [outer]: nonsense })
  } catch (error) {
    if (!(error instanceof HermodError)) throw error
    const problems = error.details?.problems as { field: string; says: string }[]
    const says = problems.find(({ field }) => field.startsWith(outer))?.says ?? ''
    return says.replace(/ \(got .*$/, '')
  }
  throw new Error(`${outer} accepts nonsense`)
}

/** The tables of the page: heading → rows. */
export function documentedOptions(markdown: string): Record<string, Option[]> {
  const sections = markdown.split(/^## /m).slice(1)
  const row = /^\| `([\w.]+)` \| (.+?) \| (.+?) \| .+ \|$/gm
  return Object.fromEntries(
    sections.map((text) => [
      /\w*(createOutbox|subscribe|start)\(/.exec(text)?.[1] ?? 'other',
      [...text.matchAll(row)].map(([, name = '', fallback = '', allowed = '']) => ({
        name,
        fallback,
        allowed,
      })),
    ]),
  )
}
