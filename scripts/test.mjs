// `npm test`: shape checks, then every test, then the slowest files, what was skipped and why, and
// as the very last line `N passed, N failed, N skipped`. With arguments (a path, -t name) only
// those tests run, without the shape checks.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { check } from './check.mjs'
import { runNode } from './process.mjs'

export async function test(args) {
  const startedAt = performance.now()
  const built = await build()
  const shape = args.length === 0 ? await check() : [{ name: 'build', passed: built === 0 }]
  const summary = await runVitest(args)
  const seconds = (performance.now() - startedAt) / 1_000
  return conclude(shape, summary, seconds)
}

async function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-test-'))
  const file = join(folder, 'summary.json')
  try {
    const code = await runNode(
      'node_modules/vitest/vitest.mjs',
      ['run', '--configLoader', 'runner', '--reporter=default', '--reporter=./scripts/reporter.mjs', ...args],
      { HERMOD_TEST_SUMMARY: file },
    )
    return { code, ...readSummary(file) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readSummary(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, failures: [], skipped: [], files: [] }
  }
}

function conclude(shape, summary, seconds) {
  const failures = [
    ...shape.filter((result) => !result.passed).map((result) => result.name),
    ...summary.failures,
    ...overall(summary, seconds),
  ]
  const passed = shape.filter((result) => result.passed).length + summary.passed
  printSlowest(summary.files)
  printList('skipped', summary.skipped)
  printList('failed', failures)
  console.log(`\nin ${seconds.toFixed(0)} s`)
  console.log(`${passed} passed, ${failures.length} failed, ${summary.skipped.length} skipped`)
  return failures.length === 0 ? 0 : 1
}

/** Failures that belong to no single test. */
function overall({ code, passed, failures, skipped }, seconds) {
  const found = []
  const limit = Number(process.env.HERMOD_TEST_SECONDS_MAX ?? Number.POSITIVE_INFINITY)
  if (passed + failures.length === 0) found.push('no test ran')
  else if (code !== 0 && failures.length === 0) found.push(`vitest ended with code ${code}`)
  if (process.env.HERMOD_REQUIRE_SERVICES === 'all' && skipped.length > 0) {
    found.push(`${skipped.length} skipped although HERMOD_REQUIRE_SERVICES=all`)
  }
  if (seconds > limit) found.push(`took ${seconds.toFixed(0)} s, the budget is ${limit} s`)
  return found
}

function printSlowest(files) {
  const slowest = files.toSorted((a, b) => b.ms - a.ms).slice(0, 10)
  if (slowest.length > 0) console.log('\nslowest files')
  for (const { path, ms } of slowest) console.log(`  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${path}`)
}

function printList(title, lines) {
  if (lines.length > 0) console.log(`\n${title} ${lines.length}`)
  for (const line of lines) console.log(`  ${line}`)
}
