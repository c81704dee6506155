/** Who is meant by the people of a file: ids, or addresses that were verified. */
import type { Asked } from '../../platform.ts'
import type { ImportRow } from './rows.ts'

const addressesMax = 50_000

type Found = { readonly id: string } | { readonly id?: undefined; readonly detail: string }

/** Compared as the column `key` is folded: A to Z only. */
const PEOPLE = `select g.name, array_agg(distinct i.person_id::text) as ids from unnest($1::text[]) as g (name)
  join hermod.person_identity i on i.type = 'email' and i.key = lower(g.name collate "C") and i.deleted_at is null and i.verified_at is not null
  join hermod.person p on p.id = i.person_id and p.deleted_at is null group by g.name`

/** People by verified address, remembered for the length of an import. */
export class Addresses {
  readonly #found = new Map<string, Found>()

  async learn(db: Asked, batch: readonly ImportRow[]): Promise<void> {
    if (this.#found.size > addressesMax) this.#found.clear()
    const names = batch.flatMap(({ document }) =>
      [document.owners, document.contributors, document.approvers].flatMap((list) => list ?? []),
    )
    const unknown = [...new Set(names)].filter((name) => name.includes('@') && !this.#found.has(name))
    if (unknown.length === 0) return
    const { rows } = await db.query<{ name: string; ids: string[] }>(PEOPLE, [unknown])
    const found = new Map(rows.map(({ name, ids }) => [name, ids]))
    for (const name of unknown) this.#found.set(name, judged(name, found.get(name) ?? []))
  }

  idOf(name: string): Found {
    if (/^[1-9][0-9]{0,17}$/.test(name)) return { id: name }
    return this.#found.get(name) ?? { detail: `is no address and no id: ${name}` }
  }
}

function judged(name: string, [id, ...others]: readonly string[]): Found {
  if (id === undefined) return { detail: `names nobody with the verified address ${name}` }
  return others.length === 0 ? { id } : { detail: `names ${others.length + 1} people: ${name}` }
}
