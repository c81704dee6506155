// Interleaving 44: a merge against a link, an unlink, another merge, an undo and a first log-in.
// One wins, the other is refused or comes after it, and undoing restores the pre-image.

import { describe, expect, it } from 'vitest'
import type { ResolvedPerson } from '../../src/people/resolve.ts'
import { usePeople } from './use-people.ts'

const people = usePeople()

let made = 0
function somebody(): Promise<ResolvedPerson> {
  const name = `r${++made}`
  return people.signIn('google', name, `${name}@example.org`)
}

/** The codes of whoever lost; undefined where it was done. */
async function together(...work: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
  const all = await Promise.allSettled(work.map((each) => each()))
  return all.map((one) => (one.status === 'rejected' ? one.reason.code : undefined))
}

/** What must hold whoever won: nothing live hangs on a merged person, one primary each. */
async function assertSound(): Promise<void> {
  const wrong = await people.db.query(
    `select i.id from hermod.person_identity i join hermod.person p on p.id = i.person_id
      where i.deleted_at is null and p.deleted_at is not null
     union all
     select p.id from hermod.person p where exists (select from hermod.person_identity i
        where i.person_id = p.id and i.deleted_at is null)
       and (select count(*) from hermod.person_identity i where i.person_id = p.id and i.is_primary) <> 1`,
  )
  expect(wrong).toEqual([])
}

const rounds = 6

describe('interleaving 44: merge-race', () => {
  it('merge against link: the link is there before, or refused after', async () => {
    for (let round = 0; round < rounds; round++) {
      const [a, b] = [await somebody(), await somebody()]
      const before = await people.identities(a)
      const value = `link${made}@example.org`
      const link = () => people.link(a, { type: 'email', provider: 'okta', value })
      const [merged, linked] = await together(() => people.merge(a, b), link)
      expect(merged).toBeUndefined()
      expect([undefined, 'HMD_CONFLICT']).toContain(linked)
      await assertSound()
      const [row] = await people.db.query<{ id: string }>('select max(id) as id from hermod.person_merge')
      await people.undo(row?.id ?? '')
      const added = linked === undefined ? [`email okta ${value}`] : []
      expect(await people.identities(a)).toEqual([...before, ...added])
    }
  })

  it('merge against unlink: the identity is gone before, or not found after', async () => {
    for (let round = 0; round < rounds; round++) {
      const [a, b] = [await somebody(), await somebody()]
      await people.link(a, { type: 'email', provider: 'okta', value: `un${made}@example.org` })
      const unlink = () => people.unlink(a, 'okta', `un${made}@example.org`)
      const [merged, unlinked] = await together(() => people.merge(a, b), unlink)
      expect(merged).toBeUndefined()
      expect([undefined, 'HMD_CONFLICT', 'HMD_NOT_FOUND']).toContain(unlinked)
      await assertSound()
    }
  })

  it('A into B against B into A, and A into B against A into C: exactly one wins', async () => {
    for (let round = 0; round < rounds; round++) {
      const [a, b, c] = [await somebody(), await somebody(), await somebody()]
      const circle = await together(
        () => people.merge(a, b),
        () => people.merge(b, a),
      )
      expect(circle.filter((code) => code === undefined)).toHaveLength(1)
      const [d, e] = [await somebody(), await somebody()]
      const fork = await together(
        () => people.merge(d, e),
        () => people.merge(d, c),
      )
      expect(fork.filter((code) => code === undefined)).toHaveLength(1)
      expect([...circle, ...fork].filter(Boolean)).toEqual(['HMD_CONFLICT', 'HMD_CONFLICT'])
      await assertSound()
    }
  })

  it('two undos of one merge, and an undo against the next merge: one wins', async () => {
    for (let round = 0; round < rounds; round++) {
      const [a, b, c] = [await somebody(), await somebody(), await somebody()]
      const first = await people.merge(a, b)
      const twice = await together(
        () => people.undo(first),
        () => people.undo(first),
      )
      expect(twice.filter((code) => code === undefined)).toHaveLength(1)
      const again = await people.merge(a, b)
      const [undone, merged] = await together(
        () => people.undo(again),
        () => people.merge(b, c),
      )
      expect([undone, merged].filter((code) => code === undefined).length).toBeGreaterThanOrEqual(1)
      expect(merged).toBeUndefined()
      await assertSound()
    }
  })

  it('merge against log-ins of both, with new addresses and at new issuers', async () => {
    for (let round = 0; round < rounds; round++) {
      const [a, b] = [await somebody(), await somebody()]
      const name = `r${made - 1}`
      const lost = await together(
        () => people.merge(a, b),
        () => people.signIn('google', name, `${name}.new@example.org`),
        () => people.signIn('okta', name, `${name}@example.org`),
        () => people.signIn('google', name, `${name}@example.org`),
      )
      expect(lost).toEqual([undefined, undefined, undefined, undefined])
      await assertSound()
      const found = await people.signIn('google', name, `${name}@example.org`)
      expect(found.personId).toBe(b.personId)
    }
  })
})
