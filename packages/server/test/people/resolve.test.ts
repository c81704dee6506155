// From a verified token to a person: found, created once however many ask at the same time, and
// known again by issuer and subject whatever else changes.

import { describe, expect, it } from 'vitest'
import { usePeople } from './use-people.ts'

const people = usePeople()

describe('interleaving 43: find or create', () => {
  it('100 first log-ins of one person at once are one person, one event, one audit row', async () => {
    const found = await Promise.all(
      Array.from({ length: 100 }, () => people.signIn('google', 's-100', 'One@example.org')),
    )
    expect(new Set(found.map(({ personId }) => personId)).size).toBe(1)
    const [one] = found
    expect(one).toMatchObject({ role: 'editor', identity: 'email:google:one@example.org' })
    expect(await people.identities(one)).toEqual([
      'oauth_sub google s-100 verified',
      'email google One@example.org verified primary',
    ])
    const told = await people.db.query(
      `select (select string_agg(type, ' ') from outbox.event
                where aggregate_type = 'person' and aggregate_id = $1) as events,
              (select string_agg(action, ' ') from hermod.person_audit
                where person_id = $1::bigint) as audit`,
      [one?.personId],
    )
    expect(told).toEqual([{ events: 'person.created', audit: 'created' }])
  })

  it('first log-ins at two trusted issuers at once are one person', async () => {
    for (let round = 0; round < 10; round++) {
      const at = (['google', 'okta'] as const).flatMap((issuer) => [issuer, issuer, issuer])
      const found = await Promise.all(
        at.map((issuer) => people.signIn(issuer, `two-${round}`, `two-${round}@example.org`)),
      )
      expect(new Set(found.map(({ personId }) => personId)).size).toBe(1)
    }
  })

  it('a known log-in costs one select and writes nothing', async () => {
    const first = await people.signIn('google', 's-hot', 'hot@example.org')
    const before = await people.db.query('select xmin, * from hermod.person_identity order by id')
    const asked: string[] = []
    const pool = new Proxy(people.platform.pool, {
      get(target, name) {
        if (name === 'connect') throw new Error('a known log-in opens no transaction')
        if (name !== 'query') return Reflect.get(target, name)
        return (sql: string, values: unknown[]) => {
          asked.push(sql)
          return target.query(sql, values)
        }
      },
    })
    const again = await people.signIn('google', 's-hot', 'HOT@example.org', {
      platform: { ...people.platform, pool },
    })
    expect(again).toEqual(first)
    expect(asked).toHaveLength(1)
    expect(await people.db.query('select xmin, * from hermod.person_identity order by id')).toEqual(before)
  })
})

describe('what a token says later', () => {
  it('the address follows, the old one stays as history, the person is the same', async () => {
    const before = await people.signIn('google', 's-move', 'old@example.org')
    const after = await people.signIn('google', 's-move', 'new@example.org')
    expect(after.personId).toBe(before.personId)
    expect(after.identity).toBe('email:google:new@example.org')
    expect(await people.identities(after)).toEqual([
      'oauth_sub google s-move verified',
      'email google new@example.org verified primary',
    ])
    // Nobody holds the old address: whoever gets it next is somebody else.
    const next = await people.signIn('google', 's-next', 'old@example.org')
    expect(next.personId).not.toBe(before.personId)
    expect(await people.audit(after)).toEqual(['created', 'address_changed'])
  })

  it('20 log-ins with a new address at once change it once', async () => {
    const { personId } = await people.signIn('google', 's-burst', 'burst-1@example.org')
    await Promise.all(Array.from({ length: 20 }, () => people.signIn('google', 's-burst', 'burst-2@example.org')))
    expect(await people.audit({ personId })).toEqual(['created', 'address_changed'])
  })

  it('no address, or one that is not verified, changes nothing', async () => {
    const before = await people.signIn('google', 's-same', 'same@example.org')
    const without = await people.signIn('google', 's-same')
    expect(without).toMatchObject({
      personId: before.personId,
      identity: 'oauth_sub:google:s-same',
    })
    await people.signIn('google', 's-same', 'other@example.org', { verified: false })
    expect(await people.identities(before)).toContain('email google same@example.org verified primary')
    expect(await people.audit(before)).toEqual(['created'])
  })

  it('a merged person’s log-in is the survivor', async () => {
    const one = await people.signIn('google', 's-m1', 'm1@example.org')
    const two = await people.signIn('google', 's-m2', 'm2@example.org')
    await people.merge(one, two)
    const again = await people.signIn('google', 's-m1', 'm1@example.org')
    expect(again.personId).toBe(two.personId)
    expect(again.identity).toBe('email:google:m1@example.org')
  })

  it('a removed person may not log in', async () => {
    const { personId } = await people.signIn('google', 's-gone', 'gone@example.org')
    await people.db.query('update hermod.person set deleted_at = now() where id = $1', [personId])
    await expect(people.signIn('google', 's-gone', 'gone@example.org')).rejects.toMatchObject({
      code: 'HMD_FORBIDDEN',
    })
  })
})

describe('names', () => {
  const names: readonly (readonly [given: string | undefined, kept: string])[] = [
    ['Ada Lovelace', 'Ada Lovelace'],
    ['  Ada\r\nBcc: x  ', 'Ada Bcc: x'],
    ['\u202eada', 'ada'],
    ['', 'name-3'],
    [undefined, 'name-4'],
    ['💚'.repeat(300), '💚'.repeat(200)],
  ]
  it.each(names.map(([given, kept], at) => [given, kept, at] as const))('%j becomes %j', async (given, kept, at) => {
    const more = given === undefined ? {} : { name: given }
    const { personId } = await people.signIn('google', `n-${at}`, `name-${at}@example.org`, more)
    const rows = await people.db.query('select display_name from hermod.person where id = $1', [personId])
    expect(rows).toEqual([{ display_name: kept }])
  })

  it('an address nobody verified is nobody’s name', async () => {
    const { personId } = await people.signIn('google', 'n-x', 'boss@example.org', {
      verified: false,
    })
    const rows = await people.db.query('select display_name from hermod.person where id = $1', [personId])
    expect(rows).toEqual([{ display_name: 'google n-x' }])
  })

  it.each(['', 'a\u0000b', 'a\nb', 'x'.repeat(256), '\ud800'])('a subject like %j is no subject', async (subject) => {
    await expect(people.signIn('google', subject)).rejects.toMatchObject({
      code: 'HMD_UNAUTHENTICATED',
    })
  })
})
