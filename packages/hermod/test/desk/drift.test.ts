// 0011 replaces one function of 0004. Until it is folded in there, this keeps the two from drifting apart.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const folder = new URL('../../migrations/', import.meta.url)

/** The function, without the condition that makes them different. */
function readDue(file: string): string {
  const text = readFileSync(new URL(file, folder), 'utf8')
  const [found = ''] =
    /create (or replace )?function outbox\.read_due\([\s\S]*?\n\$\$;\n/.exec(text) ?? []
  return found
    .replace('or replace ', '')
    .replace(/ {7}and not \(\(s\)[\s\S]*?\n(?= {5}order by)/, '')
}

it('read_due of 0011 is that of 0004 but for its condition', () => {
  expect(readDue('0004_claim.sql')).not.toBe('')
  expect(readDue('0011_decide.sql')).toBe(readDue('0004_claim.sql'))
})
