// What keeps a replay honest, taken out one at a time.

import {
  absorbs,
  endsNewest,
  fenced,
  liveMeanwhile,
  overDelete,
  sameHash,
} from '../../../packages/hermod/test/interleavings/cases/replay.ts'
import type { Sabotage } from '../sabotage.ts'

const file = 'routines/replay.sql'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'replay-no-fence',
    says: 'a former owner may move the cursor of a replay',
    patches: [
      {
        file,
        find: 'where l.subscription = sub and l.lane = x.lane and l.owner = who and l.fence = x.fence for update;',
        replace: 'where l.subscription = sub and l.lane = x.lane for update;',
      },
    ],
    caughtBy: fenced,
    red: /an old fence/,
  },
  {
    name: 'replay-no-second-look',
    says: 'what was delivered live since the window was made is not looked at',
    patches: [{ file, find: 'if s.coalesced and up_to > sieved and', replace: 'if false and' }],
    caughtBy: endsNewest,
    red: /must not bring an old version back/,
  },
  {
    name: 'replay-newest-of-its-filter',
    says: 'only events of the filter make an older one obsolete',
    patches: [
      {
        file,
        find: 'outbox.sieve(sub, lanes, positions, ids, hashes, positions[1], up_to);',
        replace: 'outbox.sieve(sub, lanes, positions, ids, hashes, positions[1], positions[matching]);',
      },
    ],
    caughtBy: overDelete,
    red: /sending: 2/,
  },
  {
    name: 'replay-by-hash',
    says: 'a later event of the same hash is taken for one of the same aggregate',
    patches: [
      {
        file,
        find: 'kept := kept || outbox.not_superseded(sub, doubts.pos, doubts.id, doubts.hash, doubts.later, up_to);',
        replace: 'null;',
      },
    ],
    caughtBy: sameHash,
    red: /toEqual|deeply equal/,
  },
  {
    name: 'replay-beside-live',
    says: 'live events of a lane are sent while a slice of it is out',
    patches: [
      {
        file: 'src/worker/replay/replaying.ts',
        find: "    lane.parked = 'waiting'\n",
        replace: '',
      },
    ],
    caughtBy: liveMeanwhile,
    red: /while a slice was out/,
  },
  {
    name: 'replay-leaves-rows',
    says: 'rows that a replay delivers stay open',
    patches: [
      {
        file: 'src/flow/settle.ts',
        find: "if (entry.mark === 'due' || (entry.mark",
        replace: 'if ((entry.mark',
      },
    ],
    caughtBy: absorbs,
    red: /rows after the replay/,
  },
]
