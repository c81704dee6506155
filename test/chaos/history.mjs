// The history of a run: one JSONL file per process, each line written synchronously before the
// next action, so that a process killed at any moment has said what it did.

import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The true time, also in a process whose clock jumps. */
const nowMs = Date.now

export function openHistory(folder, name) {
  const file = openSync(join(folder, `${name}.jsonl`), 'a')
  const line = (entry) => `${JSON.stringify({ t: nowMs(), ...entry })}\n`
  return {
    write: (entry) => void writeSync(file, line(entry)),
    /** All of them in one write: a call is accepted as a whole. */
    writeAll: (entries) => void (entries.length > 0 && writeSync(file, entries.map(line).join(''))),
    close: () => closeSync(file),
  }
}

/** Every line of every file; the order within a file is kept, which is all that matters. */
export function readHistory(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  return names.sort().flatMap((name) => readLines(join(folder, name)))
}

function readLines(path) {
  const lines = readFileSync(path, 'utf8').split('\n')
  // The last piece is empty, or the half line of a process that was killed.
  return lines.slice(0, -1).map((line) => JSON.parse(line))
}
