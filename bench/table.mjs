/**
 * Writes the README's table from the kept results, between its two markers.
 *
 *   node bench/table.mjs           writes it
 *   node bench/table.mjs --check   ends with 1 when the README says something else
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { keptResult } from './results.mjs'
import { scenarios } from './scenarios.mjs'
import { judged } from './targets.mjs'

const readme = new URL('../README.md', import.meta.url)
const [opening, closing] = ['<!-- bench -->', '<!-- /bench -->']
const nothing = 'There are no published figures yet: `npm run bench` will write its table here.'

/** The text between the markers. */
export function tableText() {
  const kept = scenarios.flatMap(({ name }) => {
    const result = keptResult(name)
    return result === undefined ? [] : [[name, result]]
  })
  if (kept.length === 0) return nothing
  const figures = Object.fromEntries(kept.map(([name, { figures: of }]) => [name, of]))
  const rows = judged(figures).map(
    ({ name, says, value, target, verdict }) =>
      `| \`${name}\` | ${says} | ${value} | ${target}${verdict === 'missed' ? ' (missed)' : ''} |`,
  )
  const head = ['| figure | measured | value | target |', '|---|---|--:|---|']
  return [...head, ...rows, '', footnote(kept.map(([, result]) => result))].join('\n')
}

/** Where the figures come from; one sentence however many runs they were measured in. */
function footnote(results) {
  const [{ machine, versions }] = results
  const list = (pick) => [...new Set(results.map(pick))].join(', ')
  const { node, postgres, ...peers } = versions
  const against = Object.entries(peers).map((pair) => pair.join(' '))
  return (
    `Measured with ${list(({ mode }) => mode)} sizes at ${list(({ commit }) => commit.slice(0, 7))} on ` +
    `${machine.cores} cores (${machine.cpu}), Node ${node}, PostgreSQL ${postgres} with durable settings` +
    `${against.length > 0 ? `, against ${against.join(', ')}` : ''}; every ratio within one run, ` +
    'medians of interleaved rounds. Repeat it with `npm run bench`; the method is in ' +
    '[docs/performance.md](docs/performance.md).'
  )
}

/** The README as it should be. */
export function readmeText() {
  const text = readFileSync(readme, 'utf8')
  const from = text.indexOf(opening)
  const to = text.indexOf(closing)
  if (from < 0 || to < from) throw new Error(`README.md has no ${opening} … ${closing}`)
  return `${text.slice(0, from + opening.length)}\n${tableText()}\n${text.slice(to)}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isRight = readmeText() === readFileSync(readme, 'utf8')
  if (process.argv.includes('--check')) process.exitCode = isRight ? 0 : 1
  else writeFileSync(readme, readmeText())
}
