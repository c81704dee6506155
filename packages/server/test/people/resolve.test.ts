// From a verified token to a person: found, created once however many ask at the same time, and
// known again by issuer and subject whatever else changes.

import { describe, expect, it } from 'vitest'
import { usePeople } from './use-people.ts'

const people = usePeople()

const identities = (personId: string | undefined) =>
  people.db.query(
    `select type, provider, value, is_primary as primary, verified_at is not null as verified
       from hermod.person_identity where person_id = $1 and deleted_at is null order by id`,
    [personId],
  )

describe('find or create', () => {
  it('100 first log-ins of one person at once are one person, one event, one audit row', async () => {
    const found = await Promise.all(
      Array.from({ length: 100 }, () => people.signIn('google', 's-100', 'One@example.org')),
    )
    expect(new Set(found.map(({ personId }) => personId)).size).toBe(1)
    const [one] = found
    expect(one).toMatchObject({ role: 'editor', identity: 'email:google:one@example.org' })
    expect(await identities(one?.personId)).toEqual([
      { type: 'oauth_sub', provider: 'google', value: 's-100', primary: false, verified: true },
      {
        type: 'email',
        provider: 'google',
        value: 'One@example.org',
        primary: true,
        verified: true,
      },
    ])
    const told = await people.db.query(
      `select (select string_agg(type, ' ') from outbox.event where aggregate_type = 'person' and aggregate_id = $1) as events,
              (select string_agg(action, ' ') from hermod.person_audit where person_id = $1::bigint) as audit`,
      [one?.personId],
    )
    expect(told).toEqual([{ events: 'person.created', audit: 'created' }])
  })
})
