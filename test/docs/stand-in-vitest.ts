// `vitest` as pages see it: tests are collected while the page is read and run after it. Only
// what the pages use.

import { expect } from 'vitest'

type Run = () => unknown

const collected: { readonly name: string; readonly run: Run }[] = []
const after: Run[] = []

export function test(name: string, run: Run): void {
  collected.push({ name, run })
}

export function afterAll(run: Run): void {
  after.push(run)
}

export function beforeAll(run: Run): void {
  collected.push({ name: 'beforeAll', run })
}

/** Runs what was collected; every failure names its test. */
export async function runCollected(): Promise<number> {
  const tests = collected.splice(0)
  try {
    for (const { name, run } of tests) {
      try {
        await run()
      } catch (cause) {
        throw new Error(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause })
      }
    }
  } finally {
    for (const run of after.splice(0).reverse()) await run()
  }
  return tests.length
}

export { expect }
