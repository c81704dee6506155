// Safeguards against connections that go mute, or end while nobody listens.

import { muteConnection, noPoolHandler } from '../../../packages/hermod/test/interleavings/cases/connections.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'mute-idle-ones',
    says: 'only the connection that went mute is thrown away, not those that lie idle beside it',
    patches: [
      {
        file: 'src/bounded.ts',
        find: 'if (heardMs >= (muteSinceMs.get(this.#db) ?? 0)) {',
        replace: 'if (heardMs >= 0) {',
      },
    ],
    caughtBy: muteConnection,
    red: /mute connections that were asked/,
  },
  {
    name: 'unheard-pool',
    says: 'nobody hears the errors of the pool',
    patches: [{ file: 'src/outbox.ts', find: 'hearPool(this.#options.pool, this.#options.listener)', replace: '' }],
    caughtBy: noPoolHandler,
    red: /somebody hears the errors of the pool/,
  },
]
