/** `hermod people list` and `show`. */
import { numberOf, usage } from 'hermod/cli'
import { findPerson, identitiesOf, listPeople, mergesInto } from '../../people/queries.ts'
import { notFound } from '../../problems.ts'
import { argument, takes, type Verb } from './verb.ts'

const limitMax = 10_000

export const list: Verb = {
  read(context, args) {
    const limit = numberOf(context, 'limit') ?? 50
    if (limit < 1 || limit > limitMax) throw usage(`--limit must be 1 to ${limitMax}`)
    return takes('BEGINNING?')(context, args)
  },
  async run({ pool }, { context, args }) {
    const limit = numberOf(context, 'limit') ?? 50
    const asker = { personId: null, seesAddresses: true }
    const found = await listPeople(pool, { q: args[0], asker, after: undefined, limit: limit + 1 })
    const { terminal } = context
    const items = found.slice(0, limit)
    if (terminal.json) {
      const people = items.map(({ sort: _, ...person }) => person)
      terminal.document({ items: people, hasMore: found.length > limit })
      return 0
    }
    const rows = items.map(({ id, displayName, role }) => [BigInt(id), displayName, role])
    terminal.table(['id', 'name', 'role'], rows)
    if (found.length > limit) terminal.say(`The first ${limit}; --limit shows more.`)
    return 0
  },
}

export const show: Verb = {
  read: takes('ID'),
  async run({ pool }, given) {
    const id = argument(given, 0)
    const person = await findPerson(pool, id)
    if (person === undefined) throw notFound(`person ${id}`)
    const identities = await identitiesOf(pool, person.id)
    const merges = await mergesInto(pool, person.id)
    const { terminal } = given.context
    if (terminal.json) {
      terminal.document({ ...person, identities, merges })
      return 0
    }
    if (person.id !== id) terminal.say(`Person ${id} was merged into ${person.id}.`)
    const { displayName, role, createdAt } = person
    terminal.data(`${person.id}  ${displayName}  ${role}  since ${createdAt.toISOString()}`)
    const rows = identities.map(({ id, type, provider, value, primary, verifiedAt }) => [
      ...[BigInt(id), type, provider, value, primary ? 'primary' : ''],
      verifiedAt?.toISOString() ?? 'not verified',
    ])
    terminal.table(['identity', 'type', 'provider', 'value', '', 'verified'], rows)
    for (const { id, from, fromName, reason } of merges) {
      terminal.say(`Merge ${id}: ${from} ${fromName} (${reason}); hermod people unmerge ${id}`)
    }
    return 0
  },
}
