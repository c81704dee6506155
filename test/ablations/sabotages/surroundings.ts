// Sabotages of what protects the engine from its surroundings: privileges, settings, encodings, a past that went away.

import {
  floatDigits,
  hostileSession,
  latin1,
} from '../../../packages/hermod/test/interleavings/cases/hostile-session.ts'
import { nulThroughSql, oddJson } from '../../../packages/hermod/test/interleavings/cases/odd-json.ts'
import { nothingPrivileged } from '../../../packages/hermod/test/interleavings/cases/privileged.ts'
import { headWentBack } from '../../../packages/hermod/test/interleavings/cases/went-back.ts'
import type { Sabotage } from '../sabotage.ts'

export const sabotages: readonly Sabotage[] = [
  {
    name: 'timeline-needed',
    says: 'a step fails where the position in the write-ahead log may not be looked at',
    patches: [
      {
        file: 'routines/identity.sql',
        find: '::bit(32)::integer; exception when insufficient_privilege',
        replace: '::bit(32)::integer; exception when division_by_zero',
      },
    ],
    caughtBy: nothingPrivileged,
    red: /permission denied for function pg_(walfile_name|current_wal_lsn)/,
  },
  {
    name: 'unseen-timeline-counts',
    says: 'a timeline that could not be seen is compared with one that can',
    patches: [
      {
        file: 'routines/sequence.sql',
        find: 'coalesce(me[3]::integer, last.timeline, 0), me[2]::oid,',
        replace: 'me[3]::integer, me[2]::oid,',
      },
    ],
    caughtBy: nothingPrivileged,
    red: /null value in column "timeline"/,
  },
  {
    name: 'no-memory-of-the-head',
    says: 'a step goes on where the log ends, whatever was seen before',
    patches: [{ file: 'routines/sequence.sql', find: 'if head < known_head then', replace: 'if false then' }],
    caughtBy: headWentBack,
    red: /a position that was used before/,
  },
  {
    name: 'no-look-at-escapes',
    says: 'a payload with an escape is taken as it is',
    patches: [{ file: 'routines/emit.sql', find: String.raw`strpos(payload, E'\\u') = 0`, replace: 'true' }],
    caughtBy: nulThroughSql,
    red: /u0000.*through outbox\.emit/,
  },
  {
    name: 'headers-as-given',
    says: 'headers that come through SQL are not looked at',
    patches: [
      { file: 'routines/emit.sql', find: 'array[outbox.headers_text(headers::text)]', replace: 'array[headers::text]' },
    ],
    caughtBy: nulThroughSql,
    red: /\{"a":1\}/,
  },
  {
    name: 'headers-believed',
    says: 'whatever stands in the column of headers is given to sinks',
    patches: [
      {
        file: 'src/delivered-event.ts',
        find: 'headersText === null ? NO_HEADERS : headersOf(headersText)',
        replace: 'headersText === null ? NO_HEADERS : JSON.parse(headersText)',
      },
    ],
    caughtBy: oddJson,
    red: /given to a sink/,
  },
  {
    name: 'time-as-a-fraction',
    says: 'the time of an event is sent as the session writes fractions',
    patches: [
      {
        file: 'routines/fields.sql',
        find: "coalesce(((date_part('epoch', created_at) * 1000)::bigint)::text, '')",
        replace: "coalesce((date_part('epoch', created_at) * 1000)::text, '')",
      },
    ],
    caughtBy: floatDigits,
    red: /created at/,
  },
  {
    name: 'comments-as-drawn',
    says: 'migrations are sent with the drawings in their comments',
    patches: [{ file: 'src/numbered-sql.ts', find: "return sql.replace(/\\P{ASCII}/gu, '?')", replace: 'return sql' }],
    caughtBy: latin1,
    red: /has no equivalent in encoding/,
  },
  {
    name: 'errors-as-told',
    says: "a destination's text that the database cannot hold is sent for ever",
    patches: [
      {
        file: 'src/database.ts',
        find: "if ((error as { code?: unknown }).code !== '22P05') throw error",
        replace: 'throw error',
      },
    ],
    caughtBy: latin1,
    red: /its dead letter|told by the worker/,
  },
  {
    name: 'times-in-any-style',
    says: 'times are read as the session writes them',
    patches: [
      {
        file: 'src/database.ts',
        find: "#>> '{}' as",
        replace: '::text as',
      },
    ],
    caughtBy: hostileSession,
    red: /updated at Invalid Date/,
  },
]
