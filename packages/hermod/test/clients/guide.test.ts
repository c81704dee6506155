// The guide shows the lines that run: every block of code in docs/guides/clients.md stands, as it
// is, in the example file that was named last before it.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const root = new URL('../../../../', import.meta.url)
const guide = readFileSync(new URL('docs/guides/clients.md', root), 'utf8')
const fileOrBlock = /\((?:\.\.\/)+(examples\/clients\/[^)]+)\)|^```\w*\n([\s\S]*?)^```$/gm

function blocks(): { file: string; code: string }[] {
  let file = 'no file named before it'
  const found: { file: string; code: string }[] = []
  for (const [, named, code] of guide.matchAll(fileOrBlock)) {
    if (named !== undefined) file = named
    else if (code !== undefined) found.push({ file, code })
  }
  return found
}

describe('docs/guides/clients.md', () => {
  it.each(blocks())('shows lines of $file', ({ file, code }) => {
    expect(readFileSync(new URL(file, root), 'utf8')).toContain(code)
  })

  it('names the versions that are tested', () => {
    const example = readFileSync(new URL('examples/clients/package.json', root), 'utf8')
    const { dependencies } = JSON.parse(example) as { dependencies: Record<string, string> }
    const drivers = ['hermod', '@prisma/adapter-pg', '@prisma/client']
    const tested = Object.entries(dependencies).filter(([name]) => !drivers.includes(name))
    for (const [, version] of tested) expect(guide).toContain(version.split('@').at(-1))
  })
})
