/** The health of subscriptions, as its reader may hear it: what a driver said names hosts and users, so only operators get it. */
import type { SubscriptionStats } from 'hermod'

type Word = SubscriptionStats['health']['word']

/** For words whose reason comes from a destination. */
const plain: Partial<Record<Word, string>> = {
  unavailable: 'its destination does not answer',
  misconfigured: 'its destination refuses us',
  disabled: 'its destination is turned off',
}

/** `details`: as it is, for operators. */
export function statsFor(subscriptions: readonly SubscriptionStats[], details: boolean): SubscriptionStats[] {
  return subscriptions.map((one) => {
    const why = details ? undefined : plain[one.health.word]
    return why === undefined ? one : { ...one, health: { ...one.health, why } }
  })
}
