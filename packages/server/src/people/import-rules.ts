/** Which users of a legacy table become people, decided without a database. */
import { folded, isAddress } from './rules.ts'

export interface LegacyUser {
  readonly id: string
  readonly email: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

/** What the database already knows about a batch. */
export interface KnownBefore {
  /** Ids that were imported before. */
  readonly imported: ReadonlySet<string>
  /** Ids that people have. */
  readonly ids: ReadonlySet<string>
  /** Address (folded) → person who has it at this provider. */
  readonly holders: ReadonlyMap<string, string>
}

export interface RowProblem {
  readonly row: string
  readonly value: string | null
  readonly says: string
}

export interface Verdicts {
  readonly accepted: readonly LegacyUser[]
  readonly unchanged: number
  readonly problems: readonly RowProblem[]
}

const idMax = 2n ** 53n

export function judge(users: readonly LegacyUser[], known: KnownBefore): Verdicts {
  const accepted: LegacyUser[] = []
  const problems: RowProblem[] = []
  const seen = { ids: new Set(known.ids), holders: new Map(known.holders) }
  let unchanged = 0
  for (const user of users) {
    if (known.imported.has(user.id)) {
      unchanged++
      continue
    }
    const says = problemOf(user, seen)
    if (says !== undefined) {
      problems.push({ row: user.id, value: user.email, says })
      continue
    }
    accepted.push(user)
    seen.ids.add(user.id)
    seen.holders.set(folded(user.email ?? ''), user.id)
  }
  return { accepted, unchanged, problems }
}

function problemOf(
  { id, email }: LegacyUser,
  { ids, holders }: Pick<KnownBefore, 'ids' | 'holders'>,
): string | undefined {
  if (!/^\d+$/.test(id) || BigInt(id) < 1n || BigInt(id) > idMax) {
    return `the id must be a whole number from 1 to ${idMax}`
  }
  if (email === null || email.trim() === '') return 'the address is empty'
  if (!isAddress(email)) return 'the address is not an e-mail address'
  const holder = holders.get(folded(email))
  if (holder !== undefined) return `the address already belongs to person ${holder}`
  return ids.has(id) ? 'the id already belongs to another person' : undefined
}
