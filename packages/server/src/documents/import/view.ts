/** An import as the API and the command line show it. */
import { Problem } from '../../problems.ts'
import type { Received } from './receive.ts'
import type { ImportRecord } from './record.ts'
import type { Counted } from './run.ts'

export function viewOf(record: ImportRecord): object {
  const { id, state, mode, total, done, imported, failed, errors, reason } = record
  const { startedAt, endedAt } = record
  const times = { startedAt: startedAt.toISOString(), endedAt: endedAt?.toISOString() ?? null }
  const rows = { total, done, imported, failed }
  return { id, state, mode, rows, errors, reason, ...times }
}

export function checkViewOf({ rows: total }: Received, { imported, failed, errors }: Counted) {
  return { dryRun: true as const, rows: { total, done: total, imported, failed }, errors }
}

/** Some rows are wrong, so an all-or-nothing import writes nothing. */
export function importRefused({ id, reason, total, failed, errors }: ImportRecord): Problem {
  return new Problem('HMD_IMPORT_REFUSED', reason ?? 'Nothing was imported.', {
    errors: errors.map(({ row, pointer, detail }) => ({
      pointer: `row ${row} ${pointer}`,
      detail,
    })),
    facts: { import: id, rows: { total, failed } },
  })
}
