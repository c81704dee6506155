// What keeps lanes, failures, ledgers and stops honest, taken out one at a time.

import {
  coalesceReplacesRetry,
  holdOneAggregate,
  policyRaised,
} from '../../../packages/hermod/test/interleavings/cases/failing.ts'
import { newKind, raiseAgainstSettle } from '../../../packages/hermod/test/interleavings/cases/lanes.ts'
import { discardInFlight, lateWrite } from '../../../packages/hermod/test/interleavings/cases/late-writes.ts'
import {
  leaseExpiry,
  oneOrder,
  sisterClaims,
  wrongClock,
} from '../../../packages/hermod/test/interleavings/cases/leases.ts'
import { ledger } from '../../../packages/hermod/test/interleavings/cases/ledger.ts'
import { crashBeforeDelivery } from '../../../packages/hermod/test/interleavings/cases/losing.ts'
import { outage, probeRace } from '../../../packages/hermod/test/interleavings/cases/outage.ts'
import { followerReadAhead } from '../../../packages/hermod/test/interleavings/cases/pipeline.ts'
import { unsettledAtMost } from '../../../packages/hermod/test/interleavings/cases/settling.ts'
import { politeStop } from '../../../packages/hermod/test/interleavings/cases/stopping.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'no-fence',
    says: 'settle ignores owner and fence',
    patches: [
      {
        file: 'routines/settle.sql',
        find: `b.lane and l.owner = who and l.fence = b.fence
     cross join lateral (select n.fence, n.pos, n.delivered from outbox.cursor n`,
        replace: `b.lane
     cross join lateral (select n.fence, n.pos, n.delivered from outbox.cursor n`,
      },
    ],
    caughtBy: leaseExpiry,
    red: /a settle under an old fence/,
  },
  {
    name: 'sister-forgotten',
    says: 'a claim whose answer is on its way counts as forgotten',
    patches: [
      {
        file: 'src/worker/leases.ts',
        find: 'await Promise.all(sisters.map((loop) => loop.#claiming))',
        replace: '',
      },
    ],
    caughtBy: sisterClaims,
    red: /the lane that the sister claimed/,
  },
  {
    name: 'worker-clock',
    says: 'leases run by the clock of the worker',
    patches: [
      {
        file: 'src/flow/claim.ts',
        find: 'const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, leaseMs, callMs])',
        replace: `const off = Date.now() - (performance.timeOrigin + performance.now())
  const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, Math.round(leaseMs + off), callMs])`,
      },
    ],
    caughtBy: wrongClock,
    red: /by the database|a lease by another clock|whose lease runs/,
  },
  {
    name: 'settle-first',
    says: 'the cursor moves before the delivery',
    patches: [
      {
        file: 'src/worker/rounds.ts',
        find: 'import { type Settlement, settlement } from',
        replace: 'import { type Settlement, settle, settlement } from',
      },
      {
        file: 'src/worker/rounds.ts',
        find: 'const sent = this.#sending.send(round)',
        replace: `for (const { lane, from, read: found } of round.batches) {
      const early = { ...found, fence: lane.fence, from }
      const all = new Map(found.fresh.map((entry) => [entry, { outcome: 'delivered' } as never]))
      const one = settlement(this.#station.subscription, early, all, () => 0)
      const call = { startedAgoMs: 0, durationMs: 0, worker: '', rehearsed: false }
      await settle(this.#station.db, this.#station.subscription, this.#station.owner, { lanes: [one], call })
    }
    const sent = this.#sending.send(round)`,
      },
    ],
    caughtBy: crashBeforeDelivery,
    red: /lost by a crash during delivery/,
  },
  {
    name: 'unsettled-unbounded',
    says: 'calls begin however much is unsettled',
    patches: [
      { file: 'src/worker/settler.ts', find: 'while (this.#unsettled > count) await this.#write()', replace: '' },
      {
        file: 'src/worker/settler.ts',
        find: 'Math.min(gatheredMax, this.#station.subscription.batch.count)',
        replace: 'gatheredMax',
      },
    ],
    caughtBy: unsettledAtMost,
    red: /delivered and not settled/,
  },
  {
    name: 'no-second-send',
    says: 'after a take-over by expiry nothing is sent again',
    patches: [
      { file: 'routines/claim.sql', find: 'perform outbox.note_again(sub, expired, call_ms);', replace: 'null;' },
    ],
    caughtBy: lateWrite,
    red: /the last word/,
  },
  {
    name: 'interrupt-frees',
    says: 'a decision on a row frees its lane although a call is out',
    patches: [
      {
        file: 'routines/operator.sql',
        find: 'set owner = outbox.interrupted(l.owner)',
        replace: "set owner = outbox.interrupted(l.owner), lease_until = '-infinity'",
      },
    ],
    caughtBy: discardInFlight,
    red: /before the call has ended/,
  },
  {
    name: 'skip-failure',
    says: 'the cursor passes a failed event without a row',
    patches: [
      {
        file: 'src/flow/settle.ts',
        find: `  result.failed++
  result.rows.push(failedRow(subscription, entry, outcome, delayOf))
}

function addDue(`,
        replace: `}

function addDue(`,
      },
    ],
    caughtBy: holdOneAggregate,
    red: /followers have no rows/,
  },
  {
    name: 'no-hold',
    says: 'followers of a retrying head are sent',
    patches: [
      {
        file: 'routines/read.sql',
        find: `case when bool_or(d.state = 'retrying' or (s).dead_holds) then 'blocked'`,
        replace: `case when false then 'blocked'`,
      },
    ],
    caughtBy: holdOneAggregate,
    red: /others flow/,
  },
  {
    name: 'read-ahead-kept',
    says: 'what was read ahead of a failure is sent',
    patches: [
      {
        file: 'src/worker/rounds.ts',
        find: 'if (!this.#passing || this.settler.doubt) await this.forget()',
        replace: 'if (this.settler.doubt) await this.forget()',
      },
    ],
    caughtBy: followerReadAhead,
    red: /a follower that was read ahead/,
  },
  {
    name: 'coalesce-oldest',
    says: 'the first of a batch is kept',
    patches: [
      {
        file: 'src/flow/deliver.ts',
        find: 'other && other.event.position > entry.event.position',
        replace: 'other && other.event.position < entry.event.position',
      },
    ],
    caughtBy: coalesceReplacesRetry,
    red: /the last change is sent/,
  },
  {
    name: 'outage-spends',
    says: 'unavailable counts as an attempt',
    patches: [
      {
        file: 'src/flow/settle.ts',
        find: `new Set(['unavailable', 'misconfigured', 'split'])`,
        replace: `new Set(['misconfigured', 'split'])`,
      },
    ],
    caughtBy: outage,
    red: /rows written during an outage/,
  },
  {
    name: 'probe-together',
    says: 'everybody may probe at once',
    patches: [
      {
        file: 'routines/breaker.sql',
        find: `   where s.name = sub and s.held_cause is not null and outbox.is_over(s.probe_at, now);
  return found;`,
        replace: `   where s.name = sub and s.held_cause is not null;
  return found;`,
      },
    ],
    caughtBy: probeRace,
    red: /too early|probes at once/,
  },
  {
    name: 'ledger-late',
    says: '`sending` is written after the send',
    patches: [
      {
        file: 'src/flow/call.ts',
        find: 'await effects.begin(entry, () => options.sending(entry, note))',
        replace: `await effects.begin(entry, async () => {
        setTimeout(() => options.sending(entry, note).catch(() => {}), 50)
      })`,
      },
    ],
    caughtBy: ledger,
    red: /sent again after a crash|crash after the dot/,
  },
  {
    name: 'sigterm-deaf',
    says: 'a stop is heard late',
    patches: [
      {
        file: 'src/worker/loop.ts',
        find: `  stop(): void {
    this.#stopping = true
    this.#sending.stop()
    this.#wake.wake()
  }`,
        replace: `  stop(): void {
    setTimeout(() => {
      this.#stopping = true
      this.#sending.stop()
      this.#wake.wake()
    }, 1_000)
  }`,
      },
    ],
    caughtBy: politeStop,
    red: /calls begun after the stop/,
  },
  {
    name: 'kinds-first',
    says: 'kinds are looked up before the head of the log',
    patches: [
      {
        file: 'routines/read.sql',
        find: 'head := coalesce((select st.pos from outbox.step st order by st.id desc limit 1), 0);',
        replace: 'head := 9223372036854775806;',
      },
    ],
    caughtBy: newKind,
    red: /a new kind was passed unread/,
  },
  {
    name: 'raise-unlocked',
    says: 'a definition is raised without the locks of its lanes',
    patches: [
      {
        file: 'routines/subscribe.sql',
        find: 'perform from outbox.lane l where l.subscription = sub order by l.lane for update;\n  end if;',
        replace: 'null;\n  end if;',
      },
    ],
    caughtBy: raiseAgainstSettle,
    red: /it never blocked/,
  },
  {
    name: 'forget-blocked',
    says: 'a raised policy forgets whom the old one blocked',
    patches: [
      {
        file: 'routines/subscribe.sql',
        find: 'perform outbox.release_blocked(known, (select s from outbox.subscription s where s.name = sub));',
        replace: '',
      },
    ],
    caughtBy: policyRaised,
    red: /the newest of those held/,
  },
  {
    name: 'renew-in-any-order',
    says: 'a renewal locks its lanes in the order they are stored in',
    patches: [
      {
        file: 'routines/lease.sql',
        find: `  select from outbox.lane l where l.subscription = sub and l.lane = any (lanes) order by l.lane for update;
  update outbox.lane l set lease_until = outbox.clock()`,
        replace: '  update outbox.lane l set lease_until = outbox.clock()',
      },
    ],
    caughtBy: oneOrder,
    red: /one of two that wait for each other/,
  },
]
