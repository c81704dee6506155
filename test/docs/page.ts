// Turns a markdown page into programs: consecutive blocks marked ts, js, sql or sh are one program,
// in order. `<!-- run: skip REASON -->` before a block leaves it out, `<!-- run: new -->` starts
// another program, `<!-- run: fails -->` says that the sh block ends with an error.

export type Block = {
  readonly language: string
  readonly text: string
  /** Line of the page where the code begins. */
  readonly line: number
  readonly fails: boolean
}

export type Program = { readonly name: string; readonly blocks: readonly Block[] }
export type Skipped = { readonly where: string; readonly reason: string }
export type Page = { readonly programs: readonly Program[]; readonly skipped: readonly Skipped[] }

const languages = new Set(['ts', 'js', 'sql', 'sh'])
const fence = /(?:<!--\s*run:\s*(?<order>[^>]*?)\s*-->\s*\n)?^```(?<language>\w+)[^\n]*\n(?<text>[\s\S]*?)^```\s*$/gm

export function readPage(path: string, markdown: string): Page {
  const programs: { name: string; blocks: Block[] }[] = []
  const skipped: Skipped[] = []
  for (const match of markdown.matchAll(fence)) {
    const { order = '', language = '', text = '' } = match.groups ?? {}
    if (!languages.has(language)) continue
    const start = (match.index ?? 0) + match[0].indexOf('```')
    const line = markdown.slice(0, start).split('\n').length + 1
    const where = `${path}:${line}`
    if (order.startsWith('skip')) {
      skipped.push({ where, reason: order.slice(4).trim() })
      continue
    }
    if (programs.length === 0 || order === 'new') programs.push({ name: where, blocks: [] })
    programs.at(-1)?.blocks.push({ language, text, line, fails: order === 'fails' })
  }
  return { programs, skipped }
}

/** The whole program as one module. `ways` maps what is imported to a file. */
export function sourceOf(program: Program, ways: Readonly<Record<string, string>>): string {
  const body = program.blocks.map((block) => statement(block, ways)).join('\n')
  return `${prelude(body, ways)}\n${body}\nexport {}\n`
}

function statement(block: Block, ways: Readonly<Record<string, string>>): string {
  const at = `// line ${block.line}\n`
  const quoted = JSON.stringify(block.text)
  if (block.language === 'sql') return `${at}await runSql(${quoted})`
  if (block.language === 'sh') return `${at}await runShell(${quoted}, ${block.fails})`
  return at + mapImports(block.text, ways)
}

export function mapImports(text: string, ways: Readonly<Record<string, string>>): string {
  return text.replace(
    /(\bfrom\s+|\bimport\s+|\bimport\()(['"])([^'"\n]+)\2/g,
    (all, before: string, _quote: string, name: string) =>
      ways[name] === undefined ? all : `${before}${JSON.stringify(ways[name])}`,
  )
}

/** `pool` is there when a page uses one that it does not make. */
function prelude(body: string, ways: Readonly<Record<string, string>>): string {
  const lines: string[] = []
  if (/\brunSql\(|\brunShell\(/.test(body)) {
    lines.push(`import { runShell, runSql } from ${JSON.stringify(ways['#run'])}`)
  }
  if (/\bpool\b/.test(body) && !/\b(const|let)\s+pool\b/.test(body)) {
    lines.push(
      `import pageDriver from ${JSON.stringify(ways.pg)}`,
      'const pool = new pageDriver.Pool({ connectionString: process.env.DATABASE_URL })',
    )
  }
  return lines.join('\n')
}
