// Runs the conformance suite of every search engine and writes docs/reference/search-conformance.md:
// engine by case, green, left out with the reason, or skipped because there is no server.
//
//   node scripts/opensearch.mjs node scripts/search-table.mjs

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fail, root, runNode } from './process.mjs'

const page = new URL('docs/reference/search-conformance.md', root)
const files = ['postgres', 'opensearch', 'typesense', 'meilisearch', 'algolia']

/** Short headings of the columns, the longer story is below the table. */
const columns = [
  { file: 'postgres', describe: undefined, heading: 'PostgreSQL' },
  { file: 'opensearch', describe: /HTTP/, heading: 'OpenSearch' },
  { file: 'opensearch', describe: /client/, heading: '… client' },
  { file: 'typesense', describe: /HTTP/, heading: 'Typesense' },
  { file: 'typesense', describe: /client/, heading: '… client' },
  { file: 'meilisearch', describe: /HTTP/, heading: 'Meilisearch' },
  { file: 'meilisearch', describe: /client/, heading: '… client' },
  { file: 'algolia', describe: /HTTP|service/, heading: 'Algolia' },
  { file: 'algolia', describe: /client/, heading: '… client' },
]

const live = ['TYPESENSE', 'MEILISEARCH', 'ALGOLIA'].filter((n) => process.env[`HERMOD_LIVE_${n}`])

async function results() {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-table-'))
  const output = join(folder, 'results.json')
  const tests = files.map((name) => `packages/hermod/test/search/${name}.test.ts`)
  const reporter = ['--reporter=json', `--outputFile=${output}`]
  try {
    const code = await runNode('node_modules/vitest/vitest.mjs', ['run', ...reporter, ...tests])
    const { testResults } = JSON.parse(readFileSync(output, 'utf8'))
    return { code, byFile: new Map(testResults.map((r) => [basename(r.name, '.test.ts'), r])) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Status by case, and reasons of what was left out; nothing at all without a server. */
function readColumn({ file, describe }, byFile) {
  const tests = (byFile.get(file)?.assertionResults ?? []).filter(({ ancestorTitles: [title] }) => {
    return describe === undefined || (title !== undefined && describe.test(title))
  })
  const leftOut = new Map(tests.flatMap(({ meta }) => meta?.leftOut ?? []).map((o) => [o.name, o.why]))
  return { statuses: new Map(tests.map(({ title, status }) => [title, status])), leftOut }
}

function table(cases, read) {
  const notes = new Map()
  const note = (why) => {
    if (!notes.has(why)) notes.set(why, notes.size + 1)
    return notes.get(why)
  }
  const cell = (name, { statuses, leftOut }) => {
    if (statuses.size === 0) return 'no server'
    if (leftOut.has(name)) return `left out (${note(leftOut.get(name))})`
    return statuses.get(name) === 'passed' ? '✓' : (statuses.get(name) ?? 'missing')
  }
  const rows = cases.map((name) => [name, ...read.map((column) => cell(name, column))])
  const count = (column) => rows.filter((row) => row[column + 1] === '✓').length
  const lines = [
    ['case', ...columns.map(({ heading }) => heading)],
    ['---', ...columns.map(() => '---')],
    ...rows,
    [`**green of ${cases.length}**`, ...columns.map((_, at) => `**${count(at)}**`)],
  ]
  const markdown = lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  const reasons = [...notes].map(([why, number]) => `${number}. ${why}.`)
  return `${markdown}\n\n${reasons.join('\n')}`
}

function pageOf(body) {
  const servers = live.length === 0 ? 'None' : live.join(', ').toLowerCase()
  return `# Search conformance

Every engine runs the same cases, \`exerciseSearchEngine\` of \`hermod/testing\`. This page is written by
\`node scripts/opensearch.mjs node scripts/search-table.mjs\`; a test compares its cases with the suite.

PostgreSQL and OpenSearch are real servers. Typesense, Meilisearch and Algolia are doubles: HTTP servers
in \`packages/hermod/test/support\`, made from the public documentation of their APIs. "… client" is the
same suite with the vendor's official client in place of our HTTP, which also judges the double. With
\`HERMOD_LIVE_TYPESENSE\`, \`HERMOD_LIVE_MEILISEARCH\` or \`HERMOD_LIVE_ALGOLIA\` (a URL; the key in \`…_KEY\`) the
same tests run against a real one. ${servers} of these three was a real server when this page was written.
What each engine guarantees is in [search-engines.md](search-engines.md).

${body}
`
}

const { code, byFile } = await results()
const read = columns.map((column) => readColumn(column, byFile))
const [first] = read
const cases = [...first.statuses.keys()].filter((name) => !/^(leaves|what it) /.test(name))
if (cases.length === 0) fail('No case ran in PostgreSQL: nothing was written.')
writeFileSync(page, pageOf(table(cases, read)))
console.log(`${cases.length} cases in ${columns.length} columns → docs/reference/search-conformance.md`)
process.exitCode = code
