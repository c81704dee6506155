/** Whoever changes what outlasts their sign-in proves again who they are. */
import type { Actor } from './actor.ts'
import { Problem } from './problems.ts'

const recentMs = 15 * 60_000

/** Sensitive changes need a recent sign-in: within a quarter of an hour. */
export function assertRecent({ signedInAt }: Pick<Actor, 'signedInAt'>, now: Date): void {
  const ageMs = signedInAt === undefined ? Number.POSITIVE_INFINITY : now.getTime() - signedInAt.getTime()
  if (ageMs <= recentMs) return
  throw new Problem('HMD_SIGN_IN_AGAIN', 'This needs a sign-in of the last 15 minutes; API tokens cannot do it.')
}
