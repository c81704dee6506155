// Reads the tree and keeps the house in order: names, headers, lengths, leftovers, the arrows
// between folders, and that nothing of one machine or registry is written down.

import { describe, expect, it } from 'vitest'
import { cyclesOf } from './support/cycles.ts'
import { rulesClosed, serverArrows } from './support/server-arrows.ts'
import { importsOf, readTree, type SourceFile, stem, targetOf } from './support/source-tree.ts'

const files = readTree()
const code = files.filter(({ path }) => /\.(ts|tsx|mjs)$/.test(path))
const tests = code.filter(({ path }) => path.endsWith('.test.ts'))
const sources = code.filter(({ path }) => /^packages\/[^/]+\/src\//.test(path))
const engine = 'packages/hermod/src/'
const server = 'packages/server/src/'

/** Lines of `file` that match, as `path:line: text`. */
function matches(file: SourceFile, pattern: RegExp): string[] {
  return file.text
    .split('\n')
    .map((line, index) => ({ line, at: `${file.path}:${index + 1}` }))
    .filter(({ line }) => pattern.test(line))
    .map(({ line, at }) => `${at}: ${line.trim()}`)
}

/** Written in pieces, so that this file does not find itself. */
function word(...pieces: string[]): string {
  return pieces.join('')
}

describe('leftovers', () => {
  it('there is code to look at', () => {
    expect(sources.length).toBeGreaterThan(0)
    expect(tests.length).toBeGreaterThan(0)
  })

  it('no open ends in the text', () => {
    const open = new RegExp(`\\b(${word('FIX', 'ME')}|${word('TO', 'DO')}|${word('XX', 'X')})\\b`)
    expect(files.filter(({ path }) => path !== 'package-lock.json').flatMap((f) => matches(f, open))).toEqual([])
  })

  it('no test is singled out', () => {
    const only = new RegExp(`\\.${word('on', 'ly')}\\(`)
    expect(tests.flatMap((file) => matches(file, only))).toEqual([])
  })

  it('no test is skipped without saying why', () => {
    const skipped = /\b(it|test|describe)\.(skip|todo|fails)\b|\bskip\(\)|\.(skipIf|runIf)\(/
    const reason = /because|needs|not found|not installed/
    const silent = tests.flatMap((file) => {
      const lines = file.text.split('\n')
      return lines.flatMap((line, index) => {
        const near = `${line} ${lines[index + 1] ?? ''}`
        return skipped.test(line) && !reason.test(near) ? [`${file.path}:${index + 1}: ${line.trim()}`] : []
      })
    })
    expect(silent.filter((line) => !line.startsWith('test/tidy.test.ts'))).toEqual([])
  })

  it('no test passes by returning early where something is missing', () => {
    const early = /if \(!\w*(available|found|present|installed)\w*\) return\b/i
    expect(tests.flatMap((file) => matches(file, early))).toEqual([])
  })
})

describe('names and sizes', () => {
  it('code files and folders are kebab-case', () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)+$/
    const folder = /^\.?[a-z0-9]+(-[a-z0-9]+)*$/
    const wrong = code.filter(({ path }) => {
      const parts = path.split('/')
      const name = parts.pop() ?? ''
      return !kebab.test(name) || !parts.every((part) => folder.test(part))
    })
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  it('no name that says nothing', () => {
    const empty = /^(utils?|helpers?|common|managers?|services?|misc)$/
    const wrong = code.filter(({ path }) => path.split('/').some((part) => empty.test(stem(part))))
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  it('every source file starts with a comment', () => {
    const header = /^(#!.*\n)?(\/\/|\/\*)/
    expect(sources.filter(({ text }) => !header.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('no source file is longer than 400 lines', () => {
    const long = sources.filter(({ text }) => text.split('\n').length > 401)
    expect(long.map(({ path }) => path)).toEqual([])
  })
})

describe('SQL', () => {
  const sql = files.filter(({ path }) => /^packages\/[^/]+\/(migrations|routines)\/.*\.sql$/.test(path))
  const ours = sql.filter(({ path }) => path.startsWith('packages/hermod/'))
  const routines = ours.filter(({ path }) => path.includes('/routines/'))
  /** They look up names of tables as their caller writes them, and run with the caller's rights. */
  const callersPath = ['refuse_table', 'unwatch', 'watch', 'watch_options']

  /** Each function of a file: its name, and what stands before its body. */
  function functionsOf({ text }: SourceFile): { name: string; head: string; standard: boolean }[] {
    const found = text.matchAll(
      /^create (?:or replace )?function outbox\.(\w+)\(([\s\S]*?)(\$\$|^return |^begin atomic$)/gm,
    )
    return [...found].map(([, name = '', head = '', body]) => ({ name, head, standard: body !== '$$' }))
  }

  it('there is some to look at', () => {
    expect(sql.length).toBeGreaterThan(routines.length)
    expect(routines.flatMap(functionsOf).length).toBeGreaterThan(100)
  })

  it('numbers that are told as text are not sorted as text', () => {
    const statements = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/`[^`]*`/g)].map(([sql]) => ({ path, sql })),
    )
    // `order by id` means the column of the answer where there is one of that name: 9 8 … 18 17 … 1.
    const asText = statements.flatMap(({ path, sql }) => {
      const sorted = [...sql.matchAll(/order by (\w+)\b(?!\.)/g)].map(([, column]) => column)
      return sorted
        .filter((column) => new RegExp(`(select|,)\\s+${column}::text\\s*,`).test(sql))
        .map((column) => `${path}: ${column}`)
    })
    expect(asText).toEqual([])
    expect(statements.length).toBeGreaterThan(100)
  })

  it('no line is longer than 120 columns', () => {
    const long = sql.flatMap((file) => matches(file, /^.{121,}$/u))
    expect(long).toEqual([])
  })

  it('every function pins search_path, or has a body whose names were bound at its creation', () => {
    const open = routines
      .flatMap(functionsOf)
      .filter(({ head, standard }) => !standard && !head.includes('set search_path'))
    expect(open.map(({ name }) => name).sort()).toEqual(callersPath)
  })

  it('functions are created in routines, and can be created again', () => {
    const anew = /^create (function|view|trigger)\b/
    expect(routines.flatMap((file) => matches(file, anew))).toEqual([])
    const elsewhere = ours.filter((file) => !routines.includes(file)).flatMap(functionsOf)
    // Defaults of tables name the clock.
    expect(elsewhere.map(({ name }) => name)).toEqual(['clock'])
  })

  it('every advisory lock is in the list of clock.sql, under its number and with its file', () => {
    const list = routines.find(({ path }) => path.endsWith('/clock.sql'))?.text ?? ''
    const listed = new Map<string, string>()
    let number = ''
    for (const line of list.split('\n').filter((line) => line.startsWith('--'))) {
      number = /^-- {3}(\d{10})/.exec(line)?.[1] ?? number
      listed.set(number, (listed.get(number) ?? '') + line)
    }
    const takers = [...ours, ...sources].filter(({ path }) => !path.endsWith('/clock.sql'))
    const taken = takers.flatMap(({ path, text }) =>
      [...text.matchAll(/\b(48412972\d\d|12123702\d\d)\b/g)].map(([found]) => ({ found, path })),
    )
    expect(taken.length).toBeGreaterThan(10)
    const unlisted = taken.filter(({ found, path }) => {
      const name = path.replace('packages/hermod/routines/', '').replace('packages/hermod/', '')
      return !listed.get(found)?.includes(name)
    })
    expect(unlisted).toEqual([])
  })

  it('every routine file starts with a comment', () => {
    expect(routines.filter(({ text }) => !text.startsWith('-- ')).map(({ path }) => path)).toEqual([])
  })
})

describe('arrows between the rooms of the engine', () => {
  const room = (name: string) => sources.filter(({ path }) => path.startsWith(`${engine}${name}/`))

  /** Imports from `file` into one of the rooms, or of one of the files, as `path -> target`. */
  function into(file: SourceFile, places: string[], withTypes = true): string[] {
    return importsOf(file)
      .filter(({ typeOnly }) => withTypes || !typeOnly)
      .map(({ from }) => targetOf(file, from) ?? from)
      .filter((target) => places.some((place) => target === place || target.startsWith(engine + place)))
      .map((target) => `${file.path} -> ${target}`)
  }

  it('flow knows neither loops nor operators', () => {
    const closed = ['worker/', 'desk/', 'cli/', 'journeys/']
    expect(room('flow').flatMap((file) => into(file, closed))).toEqual([])
  })

  it('sinks know no database and no delivery', () => {
    const closed = ['flow/', 'worker/', 'desk/', 'database.ts', 'migrate.ts', 'pg', 'postgres']
    // Its destination is a PostgreSQL: it needs a connection, and still knows nothing of the outbox.
    const allowed = ['pg', `${engine}database.ts`]
    const found = room('sinks').flatMap((file) => {
      const own = file.path.startsWith(`${engine}sinks/search/postgres`)
      return into(file, closed).filter((arrow) => !own || !allowed.some((to) => arrow.endsWith(`> ${to}`)))
    })
    expect(found).toEqual([])
  })

  it('every search engine has the same files for the same roles', () => {
    const engines = ['algolia', 'meilisearch', 'opensearch', 'postgres', 'typesense']
    const roles = ['api', 'document', 'generations', 'outcomes', 'query', 'scan', 'schema', 'search', 'write']
    const wanted = engines.flatMap((name) => roles.map((role) => `${engine}sinks/search/${name}/${role}.ts`))
    expect(wanted.filter((path) => !sources.some((file) => file.path === path))).toEqual([])
  })

  it('clients import nothing but our errors at runtime', () => {
    const runtime = room('clients').flatMap((file) =>
      importsOf(file)
        .filter(({ typeOnly, from }) => !typeOnly && !isSibling(file, from))
        .map(({ from }) => `${file.path} -> ${from}`),
    )
    expect(runtime).toEqual([])
  })

  /** Inside the folder one file may list the others; refusals are coded errors. */
  function isSibling(file: SourceFile, from: string): boolean {
    const target = targetOf(file, from) ?? ''
    return target.startsWith(`${engine}clients/`) || target === `${engine}errors.ts`
  }

  it('the engine needs no package but pg', () => {
    const foreign = sources
      .filter(({ path }) => path.startsWith(engine))
      .flatMap((file) =>
        importsOf(file)
          .filter(({ from, typeOnly }) => !typeOnly && !/^(\.|node:|pg$)/.test(from))
          .map(({ from }) => `${file.path} -> ${from}`),
      )
    expect(foreign).toEqual([])
  })
})

describe('the judge of the chaos harness', () => {
  /** Everything that is loaded with these files. */
  function loadedWith(paths: string[]): string[] {
    const found = new Set<string>()
    const visit = (path: string): void => {
      const file = files.find((each) => each.path === path)
      if (found.has(path) || file === undefined) return
      found.add(path)
      for (const { from } of importsOf(file)) visit(targetOf(file, from) ?? from)
    }
    for (const path of paths) visit(path)
    return [...found]
  }

  it('knows nothing of the engine', () => {
    const judges = ['check', 'check-sql', 'reached', 'recovery'].map((name) => `test/chaos/${name}.mjs`)
    const loaded = loadedWith(judges)
    expect(loaded).toEqual(expect.arrayContaining([...judges, 'test/chaos/history.mjs']))
    expect(loaded.filter((path) => path.startsWith('packages/') || path.endsWith('/engine.mjs'))).toEqual([])
  })
})

describe('arrows between the rooms of the server', () => {
  const own = sources.filter(({ path }) => path.startsWith(server))
  const inside = (path: string) => path.slice(server.length)
  const roomOf = (path: string) => inside(path).split('/').slice(0, -1)[0]

  function isAllowed(from: string, to: string): boolean {
    const room = roomOf(to)
    if (room === undefined || room === roomOf(from) || inside(to) === `${room}/queries.ts`) return true
    return serverArrows.some((arrow) => arrow.from.test(inside(from)) && arrow.to.test(inside(to)))
  }

  it('a room imports another room’s queries.ts and nothing else of it; only routes know HTTP', () => {
    const found = own.flatMap((file) =>
      importsOf(file)
        .map(({ from }) => targetOf(file, from))
        .filter((target) => target?.startsWith(server) && !isAllowed(file.path, target))
        .map((target) => `${file.path} -> ${target}`),
    )
    expect(found).toEqual([])
  })

  it('every arrow that is listed is used', () => {
    const used = own.flatMap((file) =>
      importsOf(file).map(({ from }) => [inside(file.path), inside(targetOf(file, from) ?? server)] as const),
    )
    const idle = serverArrows.filter((arrow) => !used.some(([from, to]) => arrow.from.test(from) && arrow.to.test(to)))
    expect(idle.map(({ why }) => why)).toEqual([])
  })

  it('only doors, routes and http import fastify', () => {
    const speaks =
      /^(cli|dev|http)\/|(routes|answers)\.ts$|^access\/(authenticate|bearer|development)\.ts$|^validate\.ts$/
    const found = own
      .filter((file) => importsOf(file).some(({ from }) => /^@?fastify/.test(from)) && !speaks.test(inside(file.path)))
      .map(({ path }) => path)
    expect(found).toEqual([])
  })

  it('rules import nothing that reads or writes', () => {
    const rules = own.filter(({ path }) => /(^|[/-])rules\.ts$/.test(path))
    expect(rules.length).toBeGreaterThan(2)
    const found = rules.flatMap((file) =>
      importsOf(file)
        .filter(({ from, typeOnly }) => !typeOnly && rulesClosed.test(targetOf(file, from) ?? from))
        .map(({ from }) => `${file.path} -> ${from}`),
    )
    expect(found).toEqual([])
  })

  it('routes hold no SQL', () => {
    const sql = /\b(select|insert into|update|delete from)\b.*\b(hermod|outbox)\.|\.query\(/i
    const routes = own.filter(({ path }) => /(^|[/-])routes\.ts$/.test(path))
    expect(routes.length).toBeGreaterThan(5)
    expect(routes.flatMap((file) => matches(file, sql))).toEqual([])
  })
})

describe('cycles', () => {
  it('no file imports itself over others, types included', () => {
    expect(cyclesOf(sources)).toEqual([])
  })
})

describe('words', () => {
  const architecture = files.find(({ path }) => path === 'ARCHITECTURE.md')?.text ?? ''
  const glossary = architecture.split('\n## Glossary\n')[1] ?? ''
  const words = [...glossary.matchAll(/^\| ([a-z][a-z -]*) \| /gm)].map(([, name]) => name as string)
  const entries = words.filter((name) => name !== 'word')
  const engineText = files.filter(({ path }) => /^packages\/hermod\/(src|routines)\//.test(path))

  it('the glossary has at most 40 words, sorted, each once', () => {
    expect(entries.length).toBeGreaterThan(20)
    expect(entries.length).toBeLessThanOrEqual(40)
    expect(entries).toEqual([...new Set(entries)].sort())
  })

  it('the glossary explains only words that the engine uses', () => {
    const unused = entries.filter((name) => {
      const used = new RegExp(`\\b${name.replace(' ', '[ -]')}`, 'i')
      return !engineText.some(({ text }) => used.test(text))
    })
    expect(unused).toEqual([])
  })

  it('words that were given up do not come back', () => {
    const retired = new RegExp(
      `\\b(${word('sa', 'ted')}|${word('le', 'nd')}(s|ing)?|${word('le', 'nt')}|${word('Held', 'Lane')})\\b`,
      'i',
    )
    const spoken = files.filter(({ path }) =>
      /^(docs\/|[A-Z]+\.md$|packages\/hermod\/(src|routines|migrations)\/)/.test(path),
    )
    expect(spoken.length).toBeGreaterThan(100)
    expect(spoken.flatMap((file) => matches(file, retired))).toEqual([])
  })
})
