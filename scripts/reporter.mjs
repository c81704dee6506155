// A Vitest reporter that writes down, for scripts/test.mjs, how many tests passed, which failed,
// which were skipped and why, and how long each file took.

import { writeFileSync } from 'node:fs'

export default class SummaryReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const summary = { passed: 0, failures: [], skipped: [], files: [] }
    for (const module of modules) addModule(summary, module)
    for (const error of unhandledErrors) summary.failures.push(`unhandled error: ${error.message}`)
    const file = process.env.HERMOD_TEST_SUMMARY
    if (file) writeFileSync(file, JSON.stringify(summary))
  }
}

function addModule(summary, module) {
  const path = module.relativeModuleId
  const { duration, collectDuration } = module.diagnostic()
  summary.files.push({ path, ms: duration + collectDuration })
  for (const owner of [module, ...module.children.allSuites()]) {
    // A failed import or hook belongs to no test, and would otherwise vanish from the count.
    for (const error of owner.errors()) {
      summary.failures.push(`${path} > ${owner.fullName ?? 'file'}: ${firstLine(error.message)}`)
    }
  }
  for (const test of module.children.allTests()) addTest(summary, path, test)
}

function addTest(summary, path, test) {
  const { state, note } = test.result()
  const name = `${path} > ${test.fullName}`
  if (state === 'passed') summary.passed++
  else if (state === 'skipped' && isDeliberate(test)) {
    summary.skipped.push(note ? `${name}: ${note}` : name)
  } else if (state === 'skipped' || state === 'pending') summary.failures.push(`${name}: did not run`)
  else summary.failures.push(name)
}

/** Tests that a failed hook prevented also count as "skipped" in Vitest; here they failed. */
function isDeliberate(test) {
  return test.options.mode === 'skip' || test.options.mode === 'todo' || test.result().note
}

function firstLine(text = '') {
  return text.split('\n')[0]
}
