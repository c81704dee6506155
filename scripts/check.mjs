// The shape of the code: format, lint and types, each one check with one verdict.

import { runNode } from './process.mjs'

const biome = 'node_modules/@biomejs/biome/bin/biome'
const tsc = 'node_modules/typescript/bin/tsc'

const checks = [
  { name: 'format', path: biome, args: ['format'] },
  {
    name: 'lint',
    path: biome,
    args: ['check', '--formatter-enabled=false', '--error-on-warnings'],
  },
  { name: 'types', path: tsc, args: ['-p', 'tsconfig.json'] },
]

/** Runs all checks, also after one failed: people want the whole list. */
export async function check() {
  const results = []
  for (const { name, path, args } of checks) {
    const code = await runNode(path, args)
    console.log(`${code === 0 ? '✓' : '✗'} ${name}`)
    results.push({ name, passed: code === 0 })
  }
  return results
}

export function format() {
  return runNode(biome, ['check', '--write'])
}
