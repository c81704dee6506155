// Which role a claim means, and which of two counts.
import { describe, expect, it } from 'vitest'
import { higherRole, roleFromClaims } from '../../src/access/roles.ts'
import type { Role } from '../../src/actor.ts'
import { permissions, permissionsOf } from '../../src/permissions.ts'

const roles = { staff: 'editor', ops: 'operator', root: 'admin', guests: 'reader' } as const

describe('the role of a claim', () => {
  it.each([
    ['a list', 'groups', { groups: ['guests', 'ops', 'staff'] }, 'operator'],
    ['one text', 'groups', { groups: 'staff' }, 'editor'],
    ['a dotted path', 'realm_access.roles', { realm_access: { roles: ['root'] } }, 'admin'],
    ['a URL', 'https://x.example/roles', { 'https://x.example/roles': ['staff'] }, 'editor'],
    ['groups that mean nothing here', 'groups', { groups: ['finance'] }, undefined],
    ['names every object has', 'groups', { groups: ['constructor', '__proto__'] }, undefined],
    ['a claim every object has', 'constructor.name', {}, undefined],
    ['no claim', 'groups', {}, undefined],
    ['another type', 'groups', { groups: [{ root: true }, 7, null, ['root']] }, undefined],
  ])('%s', (_what, roleClaim, claims, expected) => {
    expect(roleFromClaims({ roleClaim, roles }, claims)).toBe(expected)
  })

  it('an issuer without a role claim lends none', () => {
    expect(roleFromClaims({}, { roles: ['admin'] })).toBeUndefined()
    expect(roleFromClaims({ roles }, { roles: ['root'] })).toBeUndefined()
  })

  it('the higher of two counts, in either order', () => {
    const ascending: Role[] = ['reader', 'editor', 'operator', 'admin']
    for (const [i, one] of ascending.entries()) {
      for (const [j, other] of ascending.entries()) {
        expect(higherRole(one, other)).toBe(ascending[Math.max(i, j)])
      }
      expect(higherRole(one, undefined)).toBe(one)
    }
  })

  it('each role may do what the one below may, and an admin everything', () => {
    const sets = (['reader', 'editor', 'operator', 'admin'] as const).map(permissionsOf)
    for (const [i, set] of sets.slice(1).entries()) {
      for (const permission of sets[i] ?? []) expect(set).toContain(permission)
    }
    expect(new Set(permissions)).toEqual(sets.at(-1))
  })
})
