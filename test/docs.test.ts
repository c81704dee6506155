// The documentation is true: every ts, js, sql and sh block of every page runs (test/docs/page.ts
// says how to leave one out, and the reason is printed), links lead somewhere, and the reference of
// options equals the rules in the source.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { documentedOptions, optionsOf } from './docs/options-page.ts'
import { type Program, readPage, sourceOf } from './docs/page.ts'
import { closeAll } from './docs/stand-in-pg.ts'
import { runCollected } from './docs/stand-in-vitest.ts'
import { useDatabase } from './support/database.ts'
import { readTree, rootPath } from './support/source-tree.ts'

const markdown = readTree().filter(({ path }) => path.endsWith('.md'))
/** What users read. Pages for contributors hold fragments. */
const pages = markdown
  .filter(({ path }) => /^(README\.md|docs\/.*|packages\/hermod\/README\.md)$/.test(path))
  // Made from the help of the commands, which packages/hermod/test/cli runs; `work` never ends.
  .filter(({ path }) => path !== 'docs/reference/cli.md')
  .map(({ path, text }) => ({ path, ...readPage(path, text) }))

const source = (path: string) => join(rootPath, 'packages/hermod/src', path)
const ways: Record<string, string> = {
  hermod: source('index.ts'),
  'hermod/testing': source('testing/index.ts'),
  'hermod/embedded': source('embedded/index.ts'),
  'hermod/sinks': source('sinks/index.ts'),
  'hermod/sinks/search': source('sinks/search/index.ts'),
  ...Object.fromEntries(
    ['postgres', 'opensearch', 'typesense', 'meilisearch', 'algolia'].map((name) => [
      `hermod/sinks/search/${name}`,
      source(`sinks/search/${name}.ts`),
    ]),
  ),
  'hermod-server': join(rootPath, 'packages/server/src/index.ts'),
  pg: join(rootPath, 'test/docs/stand-in-pg.ts'),
  vitest: join(rootPath, 'test/docs/stand-in-vitest.ts'),
  '#run': join(rootPath, 'test/docs/run.ts'),
}

const folder = mkdtempSync(join(tmpdir(), 'hermod-docs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const isTyped = ({ blocks }: Program) => blocks.some(({ language }) => language === 'ts')
const nameOf = (program: Program) => `${program.name.replace(/[^a-zA-Z0-9]+/g, '-')}.${isTyped(program) ? 'ts' : 'mjs'}`

function writeProgram(program: Program): string {
  const file = join(folder, nameOf(program))
  writeFileSync(file, sourceOf(program, ways))
  return file
}

describe('pages', () => {
  for (const { path, programs, skipped } of pages) {
    if (programs.length === 0 && skipped.length === 0) continue
    describe(path, () => {
      const db = useDatabase()
      for (const program of programs) {
        it(`${program.name} runs`, async () => {
          vi.stubEnv('DATABASE_URL', db.url)
          const asserts = vi.spyOn(console, 'assert')
          try {
            await import(/* @vite-ignore */ pathToFileURL(writeProgram(program)).href)
            await runCollected()
            expect(asserts.mock.calls.filter(([holds]) => !holds)).toEqual([])
          } finally {
            vi.unstubAllEnvs()
            asserts.mockRestore()
            await closeAll()
          }
        }, 60_000)
      }
      for (const { where, reason } of skipped) {
        it(`${where} is not run: ${reason}`, () => expect(reason).not.toBe(''))
      }
    })
  }
})

describe('types', () => {
  const checked = join(folder, 'types')
  const compiler = join(rootPath, 'node_modules/typescript/bin/tsc')

  it('every TypeScript block is well typed', () => {
    mkdirSync(checked)
    writeFileSync(join(checked, 'tsconfig.json'), JSON.stringify(configuration()))
    writeFileSync(join(checked, 'package.json'), '{ "type": "module" }')
    // The names stay as they are written: the types of `pg` and `vitest` are the real ones.
    const own = { '#run': ways['#run'] as string, pg: 'pg' }
    for (const program of pages.flatMap(({ programs }) => programs).filter(isTyped)) {
      writeFileSync(join(checked, nameOf(program)), sourceOf(program, own))
    }
    expect(compile([compiler, '-p', checked])).toBe('')
  })

  function configuration(): object {
    const modules = join(rootPath, 'node_modules')
    const real = { pg: '@types/pg/index.d.ts', vitest: 'vitest/dist/index.d.ts' }
    const paths = Object.entries(ways)
      .filter(([name]) => name.startsWith('hermod'))
      .concat(Object.entries(real).map(([name, file]) => [name, join(modules, file)]))
    return {
      extends: join(rootPath, 'tsconfig.base.json'),
      compilerOptions: {
        noEmit: true,
        allowImportingTsExtensions: true,
        rewriteRelativeImportExtensions: false,
        typeRoots: [join(modules, '@types')],
        paths: Object.fromEntries(paths.map(([name, file]) => [name, [file]])),
      },
    }
  }

  function compile(args: string[]): string {
    try {
      return String(execFileSync(process.execPath, args, { stdio: 'pipe' }))
    } catch (error) {
      return String((error as { stdout?: Buffer }).stdout)
    }
  }
})

describe('links', () => {
  const link = /\]\((?!https?:|mailto:|#)([^)\s#]+)(?:#[^)\s]*)?\)/g
  for (const { path, text } of markdown) {
    const targets = [...text.matchAll(link)].map(([, target = '']) => target)
    if (targets.length === 0) continue
    it(`${path} leads somewhere`, () => {
      const dead = targets.filter((to) => !existsSync(join(rootPath, dirname(path), to)))
      expect(dead).toEqual([])
    })
  }
})

describe('the reference of options', () => {
  const page = markdown.find(({ path }) => path === 'docs/reference/options.md')?.text ?? ''
  for (const what of ['createOutbox', 'subscribe', 'start']) {
    it(`of ${what} equals the rules in the source`, () => {
      expect(documentedOptions(page)[what]).toEqual(optionsOf(what))
    })
  }
})

describe('the guarantees', () => {
  const page = markdown.find(({ path }) => path === 'docs/guarantees.md')?.text ?? ''
  const proofs = [...page.matchAll(/\b(?:Proved|Shown) by ((?:`[^`]+`|[\s,]|and)+)/g)]
  const cases = proofs.flatMap(([, list = '']) => [...list.matchAll(/`([a-z0-9-]+)`/g)])
  const tests = readTree().filter(({ path }) => /(^|\/)test\/.*\.ts$/.test(path))

  /** `outage` also names `outage: refused`. */
  const isCase = (text: string, name: string) =>
    [`'${name}'`, `'${name}:`, `\`${name}:`].some((title) => text.includes(title))

  it('name tests that exist', () => {
    expect(cases.length).toBeGreaterThan(20)
    const missing = cases.map(([, name]) => name).filter((name) => !tests.some(({ text }) => isCase(text, `${name}`)))
    expect([...new Set(missing)]).toEqual([])
  })
})

describe('the first program', () => {
  it('examples/first-event is the code of its guide', () => {
    const guide = markdown.find(({ path }) => path === 'docs/guides/first-event.md')?.text ?? ''
    const blocks = [...guide.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code]) => code)
    const example = readTree().find(({ path }) => path === 'examples/first-event/main.mjs')?.text
    expect(example?.split('\n').slice(2).join('\n')).toBe(blocks.join('\n'))
  })
})
