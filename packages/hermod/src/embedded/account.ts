// Which operating system account runs PostgreSQL, and which folders that account can reach.
// PostgreSQL refuses to run as root, so root hands its processes to `postgres` or `nobody`.

import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { EmbeddedError } from './errors.ts'

export type Account = { readonly name: string; readonly uid: number; readonly gid: number }

/** The account to switch to, or undefined where the current user may run PostgreSQL itself. */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const found = findAccount('postgres') ?? findAccount('nobody')
  if (found) return found
  throw new EmbeddedError(
    'HMD_EMBEDDED_ROOT',
    'PostgreSQL refuses to run as root, and neither of the users `postgres` and `nobody` exists. ' +
      'Create one of them or run as an ordinary user.',
  )
}

function findAccount(name: string): Account | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined
}

/** Whether the account can read and enter `path` and pass every folder above it. */
export function canReach(path: string, account: Account | undefined): boolean {
  if (!account) return canReadOurselves(path)
  let current = realpathSync(path)
  if (!permits(current, account, 0o5)) return false
  while (dirname(current) !== current) {
    current = dirname(current)
    if (!permits(current, account, 0o1)) return false
  }
  return true
}

function canReadOurselves(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function permits(path: string, account: Account, bits: number): boolean {
  const { mode, uid, gid } = statSync(path)
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0
  return ((mode >> shift) & bits) === bits
}
