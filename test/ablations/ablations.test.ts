// A suite that cannot fail proves nothing: each sabotage removes one safeguard from a copy of the
// engine, and the case that guards it must turn red, for the right reason.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { engineRoot } from '../support/case.ts'
import { useDatabase } from '../support/database.ts'
import { readTree } from '../support/source-tree.ts'
import { patchedEnv } from './patched.ts'
import { applyPatch, type Sabotage } from './sabotage.ts'

const folder = new URL('./sabotages/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
const sabotages: Sabotage[] = []
for (const file of files) {
  const found = (await import(/* @vite-ignore */ new URL(file, folder).href)) as {
    sabotages: readonly Sabotage[]
  }
  sabotages.push(...found.sabotages)
}

describe('sabotages', () => {
  const server = useDatabase({ ownCluster: true, settings: { autovacuum: 'off' } })

  it('have names of their own', () => {
    const names = sabotages.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  for (const sabotage of sabotages) {
    it(`${sabotage.name} is caught by ${sabotage.caughtBy.title}`, async () => {
      const env = await patchedEnv(server, sabotage)
      const failure = await sabotage.caughtBy.run(env).then(
        () => undefined,
        (error: unknown) => String(error),
      )
      expect(failure ?? 'nobody noticed', sabotage.says).toMatch(sabotage.red)
    })
  }
})

describe('the text a sabotage replaces', () => {
  it('must be there exactly once', () => {
    const patch = { file: 'a.sql', find: 'lock', replace: '' }
    expect(applyPatch('a lock here', patch)).toBe('a  here')
    expect(() => applyPatch('none', patch)).toThrow('occurs 0 times')
    expect(() => applyPatch('lock lock', patch)).toThrow('occurs 2 times')
  })
})

it('nothing that is packed mentions ablations or holds tests', () => {
  const { files: packed } = JSON.parse(readFileSync(join(engineRoot, 'package.json'), 'utf8'))
  expect(packed).toEqual(['bin', 'dist', 'migrations', 'routines'])
  const word = /ablat|sabotag/i
  const shipped = readTree().filter(({ path }) => /^packages\/[^/]+\/(src|migrations|routines)\//.test(path))
  expect(shipped.filter(({ text }) => word.test(text)).map(({ path }) => path)).toEqual([])
})
