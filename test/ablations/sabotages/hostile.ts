// Safeguards against what destinations say: texts that cannot be stored, settles that are refused.

import { hostileError, hostileProbe, settleRefused } from '../../../packages/hermod/test/interleavings/cases/hostile.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'cleaned-before-cut',
    says: 'a fingerprint is cut without being cleaned afterwards',
    patches: [
      {
        file: 'src/sinks/fingerprint.ts',
        find: "return clean(parts.join(' | ').slice(0, fingerprintCharsMax))",
        replace: "return clean(parts.join(' | ')).slice(0, fingerprintCharsMax)",
      },
    ],
    caughtBy: hostileError,
    red: /errors told/,
  },
  {
    name: 'raw-says',
    says: 'the breaker stores what a probe says as it is',
    patches: [{ file: 'src/flow/hold.ts', find: 'clip(says, saysCharsMax)', replace: 'says' }],
    caughtBy: hostileProbe,
    red: /errors told|waited/,
  },
  {
    name: 'refused-is-sent-again',
    says: 'a settle that is refused is not written again: its batch is sent again',
    patches: [
      {
        file: 'src/worker/settler.ts',
        find: 'if (isConnectionError(error)) throw error',
        replace: 'if (isConnectionError(error) || this.#station !== undefined) throw error',
      },
    ],
    caughtBy: settleRefused,
    red: /sent once each/,
  },
]
