/** Roles: which of two is higher, and which one an issuer's claim means here. */
import type { JWTPayload } from 'jose'
import type { Role } from '../actor.ts'
import type { Issuer } from '../config.ts'

const ascending: readonly Role[] = ['reader', 'editor', 'operator', 'admin']

export function higherRole(one: Role, other: Role | undefined): Role {
  if (other === undefined) return one
  return ascending.indexOf(other) > ascending.indexOf(one) ? other : one
}

/** The highest role that the claim maps to; unknown groups are ignored. */
export function roleFromClaims(
  { roleClaim, roles }: Pick<Issuer, 'roleClaim' | 'roles'>,
  claims: JWTPayload,
): Role | undefined {
  if (roleClaim === undefined || roles === undefined) return undefined
  const named = [valueAt(claims, roleClaim)].flat().filter((name) => typeof name === 'string')
  return named
    .map((name) => (Object.hasOwn(roles, name) ? roles[name] : undefined))
    .reduce<Role | undefined>((best, role) => (role ? higherRole(role, best) : best), undefined)
}

/** `groups`, `https://example.org/roles`, or the dotted `realm_access.roles`. */
function valueAt(claims: JWTPayload, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path.split('.').reduce<unknown>((at, key) => {
    const inside = typeof at === 'object' && at !== null && Object.hasOwn(at, key)
    return inside ? (at as Record<string, unknown>)[key] : undefined
  }, claims)
}
