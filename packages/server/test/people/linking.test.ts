// Whom an e-mail address may join: the attacks on accounts that are linked by address
// (pre-hijacking, nOAuth), and addresses that only look alike.

import { describe, expect, it } from 'vitest'
import { usePeople } from './use-people.ts'

const people = usePeople()

const proposals = (personId: string) =>
  people.db.query(
    `select changes ->> 'person' as person from hermod.person_audit
      where person_id = $1 and action = 'link_proposed' order by id`,
    [personId],
  )

describe('who is joined', () => {
  it('both verified, both issuers trusted for the domain: one person, two ways to log in', async () => {
    const google = await people.signIn('google', 'ada', 'ada@example.org')
    const okta = await people.signIn('okta', 'ada-o', 'ADA@Example.ORG')
    expect(okta.personId).toBe(google.personId)
    expect(okta.identity).toBe('email:okta:ada@example.org')
    expect(await people.identities(google)).toEqual([
      'oauth_sub google ada verified',
      'email google ada@example.org verified primary',
      'oauth_sub okta ada-o verified',
      'email okta ADA@Example.ORG verified',
    ])
    expect(await people.audit(google)).toEqual(['created', 'linked'])
  })

  it('the new address is not verified: a new person', async () => {
    const victim = await people.signIn('google', 'v1', 'v1@example.org')
    const other = await people.signIn('okta', 'x1', 'v1@example.org', { verified: false })
    expect(other.personId).not.toBe(victim.personId)
    expect(other.identity).toBe('oauth_sub:okta:x1')
    expect(await people.identities(other)).toEqual(['oauth_sub okta x1 verified primary'])
  })

  it('the known address is not verified: a new person (pre-hijacking by an unverified account)', async () => {
    const attacker = await people.signIn('okta', 'x2', 'v2@example.org', { verified: false })
    const victim = await people.signIn('google', 'v2', 'v2@example.org')
    expect(victim.personId).not.toBe(attacker.personId)
    expect(await people.identities(victim)).toContain('email google v2@example.org verified primary')
  })

  it('an address an administrator linked without vouching for it joins nobody', async () => {
    const someone = await people.signIn('google', 'v3-other', 'someone@example.org')
    await people.link(someone, { type: 'email', provider: 'okta', value: 'v3@example.org' })
    const victim = await people.signIn('okta', 'v3', 'v3@example.org')
    expect(victim.personId).not.toBe(someone.personId)
  })

  it('an address an administrator vouched for joins its person', async () => {
    const ada = await people.signIn('google', 'v4', 'v4@example.org')
    await people.link(ada, {
      type: 'email',
      provider: 'okta',
      value: 'v4.new@example.org',
      verified: true,
    })
    const again = await people.signIn('okta', 'v4-o', 'v4.new@example.org')
    expect(again.personId).toBe(ada.personId)
  })
})

describe('whom an issuer may speak for', () => {
  it('nOAuth: an issuer that is not trusted for the domain joins nobody, verified or not', async () => {
    const victim = await people.signIn('google', 'v5', 'v5@example.org')
    const attacker = await people.signIn('evil', 'x5', 'v5@example.org')
    expect(attacker.personId).not.toBe(victim.personId)
    expect(await proposals(victim.personId)).toEqual([{ person: attacker.personId }])
  })

  it('pre-hijacking: who came first through an untrusted issuer gets nobody’s later log-in', async () => {
    const attacker = await people.signIn('evil', 'x6', 'v6@example.org')
    const victim = await people.signIn('google', 'v6', 'v6@example.org')
    expect(victim.personId).not.toBe(attacker.personId)
    const again = await people.signIn('okta', 'v6-o', 'v6@example.org')
    // Two people have the address: in doubt it is a third one, and both get a proposal.
    expect([attacker.personId, victim.personId]).not.toContain(again.personId)
  })

  it('trusted for example.org is not trusted for its neighbours', async () => {
    const domains = ['sub.example.org', 'example.org.evil.test', 'xexample.org', 'example.com']
    for (const [at, domain] of domains.entries()) {
      const google = await people.signIn('google', `d${at}`, `ada@${domain}`)
      const okta = await people.signIn('okta', `d${at}`, `ada@${domain}`)
      expect(okta.personId, domain).not.toBe(google.personId)
    }
  })

  it('operators and admins are never joined: a proposal instead', async () => {
    for (const role of ['operator', 'admin']) {
      const boss = await people.signIn('google', role, `${role}@example.org`)
      await people.db.query('update hermod.person set role = $2 where id = $1', [boss.personId, role])
      const other = await people.signIn('okta', role, `${role}@example.org`)
      expect(other.personId).not.toBe(boss.personId)
      expect(other.role).toBe('editor')
      expect(await proposals(boss.personId)).toEqual([{ person: other.personId }])
      const again = await people.signIn('okta', role, `${role}@example.org`)
      expect(again.personId).toBe(other.personId)
      expect(await proposals(boss.personId)).toHaveLength(1)
    }
  })

  it('a log-in that was unlinked is not joined again by its address', async () => {
    const ada = await people.signIn('google', 'u1', 'u1@example.org')
    await people.signIn('okta', 'u1-o', 'u1@example.org')
    await people.unlink(ada, 'okta', 'u1-o')
    const other = await people.signIn('okta', 'u1-o', 'u1@example.org')
    expect(other.personId).not.toBe(ada.personId)
  })
})

describe('addresses that look alike', () => {
  const variants = [
    ['a dot', 'look.alike@example.org'],
    ['a plus', 'lookalike+x@example.org'],
    ['a Cyrillic letter', 'lookаlike@example.org'],
    ['a Kelvin sign for k', 'loo\u212aalike@example.org'],
    ['a dotless i', 'lookal\u0131ke@example.org'],
    ['a dotted capital I', 'lookal\u0130ke@example.org'],
    ['a full-width letter', 'lookalik\uff45@example.org'],
    ['a full-width domain', 'lookalike@\uff45xample.org'],
    ['a trailing dot', 'lookalike@example.org.'],
    ['another domain behind an @', 'lookalike@example.org@evil.test'],
    ['a domain as literal', 'lookalike@[127.0.0.1]'],
    ['a space', 'lookalike @example.org'],
    ['a zero-width space', 'look\u200balike@example.org'],
    ['a line break', 'lookalike@example.org\n'],
  ] as const

  it.each(variants)('%s is somebody else', async (what, variant) => {
    const first = await people.signIn('google', 'look', 'lookalike@example.org')
    const other = await people.signIn('okta', `look ${what}`, variant)
    expect(other.personId).not.toBe(first.personId)
    const third = await people.signIn('google', `look g ${what}`, variant)
    expect(third.personId).not.toBe(first.personId)
    expect(await people.identities(first)).toContain('email google lookalike@example.org verified primary')
  })

  it('an internationalised domain and its ASCII form are two addresses', async () => {
    const one = await people.signIn('google', 'idn-1', 'ada@bücher.example')
    const two = await people.signIn('okta', 'idn-2', 'ada@xn--bcher-kva.example')
    expect(two.personId).not.toBe(one.personId)
  })

  it('upper and lower case are one', async () => {
    const one = await people.signIn('google', 'case', 'Case@Example.org')
    const two = await people.signIn('okta', 'case', 'cASE@eXAMPLE.ORG')
    expect(two.personId).toBe(one.personId)
  })

  it('subjects are compared as they are', async () => {
    const one = await people.signIn('google', 'Sub', 'sub-1@example.org')
    const two = await people.signIn('google', 'sub', 'sub-2@example.org')
    expect(two.personId).not.toBe(one.personId)
  })
})

describe('an address that two accounts of one issuer carry', () => {
  it('is given on or shared: two people, and it proves nothing any more', async () => {
    const first = await people.signIn('google', 'shared-1', 'team@example.org')
    const second = await people.signIn('google', 'shared-2', 'team@example.org')
    expect(second.personId).not.toBe(first.personId)
    expect(await people.identities(first)).toContain('email google team@example.org primary')
    expect(await people.identities(second)).toEqual(['oauth_sub google shared-2 verified primary'])
    expect(await people.audit(first)).toEqual(['created', 'address_contested', 'link_proposed'])
    const elsewhere = await people.signIn('okta', 'shared-3', 'team@example.org')
    expect([first.personId, second.personId]).not.toContain(elsewhere.personId)
  })

  it('neither log-in writes anything from then on', async () => {
    await people.signIn('google', 'flip-1', 'flip@example.org')
    await people.signIn('google', 'flip-2', 'flip@example.org')
    const before = await people.db.query('select count(*)::int as n from hermod.person_audit')
    for (const subject of ['flip-1', 'flip-2', 'flip-1', 'flip-2']) {
      await people.signIn('google', subject, 'flip@example.org')
    }
    expect(await people.db.query('select count(*)::int as n from hermod.person_audit')).toEqual(before)
  })

  it('a known account whose address changes to one of another gets none', async () => {
    const first = await people.signIn('google', 'take-1', 'take@example.org')
    const second = await people.signIn('google', 'take-2', 'mine@example.org')
    await people.signIn('google', 'take-2', 'take@example.org')
    expect(await people.identities(second)).toEqual(['oauth_sub google take-2 verified primary'])
    expect(await people.identities(first)).toContain('email google take@example.org primary')
  })
})
