// A suite that cannot fail proves nothing: each sabotage removes one safeguard from a copy of the
// engine, and the case that guards it must turn red, for the right reason. Here: that all of them are run.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { engineRoot } from '../support/case.ts'
import { readTree } from '../support/source-tree.ts'
import { allSabotages } from './exercise.ts'
import { applyPatch } from './sabotage.ts'

it('sabotages have names of their own', async () => {
  const names = (await allSabotages()).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

it('every share of the sabotages is run', () => {
  const folder = new URL('./', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.startsWith('share-'))
  const calls = files.map((name) => /exerciseShare\((\d+), (\d+)\)/.exec(readFileSync(new URL(name, folder), 'utf8')))
  expect(calls.map((call) => call?.slice(1).map(Number))).toEqual(files.map((_, at) => [at + 1, files.length]))
})

it('the text a sabotage replaces must be there exactly once', () => {
  const patch = { file: 'a.sql', find: 'lock', replace: '' }
  expect(applyPatch('a lock here', patch)).toBe('a  here')
  expect(() => applyPatch('none', patch)).toThrow('occurs 0 times')
  expect(() => applyPatch('lock lock', patch)).toThrow('occurs 2 times')
})

it('nothing that is packed mentions ablations or holds tests', () => {
  const { files: packed } = JSON.parse(readFileSync(join(engineRoot, 'package.json'), 'utf8'))
  expect(packed).toEqual(['bin', 'dist', 'migrations', 'routines'])
  const word = /ablat|sabotag/i
  const shipped = readTree().filter(({ path }) => /^packages\/[^/]+\/(src|migrations|routines)\//.test(path))
  expect(shipped.filter(({ text }) => word.test(text)).map(({ path }) => path)).toEqual([])
})
