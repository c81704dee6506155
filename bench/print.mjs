/** What a person sees: progress on the error stream, tables on standard output. */
import { judged } from './targets.mjs'

const isTerminal = process.stderr.isTTY === true
const startedMs = performance.now()

/** One line, rewritten in place on a terminal. */
export function progress(scenario, text) {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0).padStart(4)
  const line = `${seconds} s  ${scenario.padEnd(8)} ${text}`
  if (isTerminal) process.stderr.write(`\r\x1b[2K${line}`)
  else console.error(line)
}

export function clearProgress() {
  if (isTerminal) process.stderr.write('\r\x1b[2K')
}

export function printHeader({ mode, versions, machine, settings }) {
  console.log(`Hermod's benchmark, ${mode}: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB`)
  console.log(
    `${Object.entries(versions)
      .map((pair) => pair.join(' '))
      .join(', ')}; durable settings`,
  )
  for (const [name, values] of Object.entries(settings)) console.log(`  ${name}: ${JSON.stringify(values)}`)
}

export function printScenario({ title, size, figures, rounds }) {
  clearProgress()
  const { rounds: wanted, ...sizes } = size
  console.log(`\n${title}\n  sizes ${JSON.stringify(sizes)}, ${rounds} of ${wanted} rounds`)
  for (const [name, value] of Object.entries(figures)) console.log(`  ${name.padEnd(20)} ${short(value)}`)
}

function short(value) {
  return value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export function printVerdicts(figures) {
  const rows = judged(figures)
  const widths = ['name', 'value', 'target'].map((key) => Math.max(...rows.map((row) => row[key].length)))
  console.log('')
  for (const { name, value, target, verdict } of rows) {
    const cells = [name.padEnd(widths[0]), value.padStart(widths[1]), target.padEnd(widths[2])]
    console.log(`  ${cells.join('  ')}  ${verdict}`)
  }
}
