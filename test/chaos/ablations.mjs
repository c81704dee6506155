// One safeguard taken out at a time: `--ablate NAME` must turn a run red, for a suite that cannot
// fail proves nothing. Applied to the run's copy of the built engine, never to the engine itself;
// the scripted ones are in test/ablations. `*.sql` is whichever SQL file has the text.

export const ablations = {
  // Transactions that were open at the last step are never looked at again: lost.
  'no-late-branch': {
    file: '*.sql',
    find: 'select b.* from outbox.event b where b.xid = any (late)',
    put: 'select b.* from outbox.event b where false',
  },
  // The cursor passes a failed event without a row: lost.
  'skip-failure': {
    file: '*.sql',
    find: 'perform outbox.settle_row(s, x.lane, r, x."to", now);',
    put: 'null;',
  },
  // Followers of a failed event are sent: order.
  'no-hold': {
    file: '*.sql',
    find: "when bool_or(d.state = 'retrying' or (s).dead_holds) then 'blocked'",
    put: "when false then 'blocked'",
  },
  // Of several events of an aggregate the first is kept: the newest state never arrives.
  'coalesce-oldest': {
    file: 'dist/flow/deliver.js',
    find: 'other.event.position > entry.event.position',
    put: 'other.event.position < entry.event.position',
  },
  // Nothing says that a mail is being sent: after a kill it is sent again.
  'ledger-blind': {
    file: 'dist/flow/call.js',
    find: 'await options.sending(entry, note);',
    put: '',
  },
}
