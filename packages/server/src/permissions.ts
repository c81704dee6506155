/** What each role may do. One table; routes name the permission they need. */

export type Role = 'reader' | 'editor' | 'operator' | 'admin'

export const permissions = [
  'document:read',
  'document:write',
  'search:read',
  'person:read',
  'person:admin',
  'audit:read',
  'import:write',
  'outbox:read',
  'outbox:operate',
  'payload:read',
  'token:own',
  'token:admin',
] as const

export type Permission = (typeof permissions)[number]

const reader: readonly Permission[] = ['document:read', 'search:read', 'person:read', 'token:own']
const editor: readonly Permission[] = [...reader, 'document:write']
const operator: readonly Permission[] = [...editor, 'audit:read', 'import:write', 'outbox:read', 'outbox:operate']

const byRole: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  reader: new Set(reader),
  editor: new Set(editor),
  operator: new Set(operator),
  admin: new Set(permissions),
}

export function permissionsOf(role: Role): ReadonlySet<Permission> {
  return byRole[role]
}
