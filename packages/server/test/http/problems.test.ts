// One catalogue: the page, the reference and the code know the same problems.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fastify } from 'fastify'
import { describe, expect, it } from 'vitest'
import { problemAdvice } from '../../src/http/problem-advice.ts'
import { problemPage } from '../../src/http/problem-page.ts'
import { type ProblemCode, problemCatalogue } from '../../src/problems.ts'

const codes = Object.keys(problemCatalogue) as ProblemCode[]
const sources = fileURLToPath(new URL('../../src/', import.meta.url))

describe('the catalogue of problems', () => {
  it('is the reference in docs', async () => {
    const rows = codes.map((code) => {
      const [status, title] = problemCatalogue[code]
      return `| \`${code}\` | ${status} | ${title} | ${problemAdvice[code]} |`
    })
    const page = `${head}${rows.join('\n')}\n`
    await expect(page).toMatchFileSnapshot('../../../../docs/reference/problems.md')
  })

  it('is the page that `type` leads to', async () => {
    const app = fastify()
    problemPage(app)
    const answer = await app.inject('/docs/problems')
    expect(answer.headers['content-type']).toContain('text/html')
    const shown = [...answer.body.matchAll(/<tr id="(\w+)">/g)].map(([, id]) => id)
    expect(shown).toEqual(codes.map((code) => code.toLowerCase()))
  })

  it('holds nothing that no code throws', () => {
    const text = readdirSync(sources, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !/problem(s|-advice)\.ts$/.test(path))
      .map((path) => readFileSync(join(sources, path), 'utf8'))
      .join('\n')
    expect(codes.filter((code) => !text.includes(code))).toEqual([])
  })

  it('is in the order of the status', () => {
    const statuses = codes.map((code) => problemCatalogue[code][0])
    expect(statuses).toEqual([...statuses].sort((a, b) => a - b))
  })
})

const head = `# Problems of the API

Every error of the HTTP API is an RFC 9457 problem (\`application/problem+json\`): \`type\`, \`title\`, \`status\`, \`detail\` (what is
wrong and what to do), \`instance\`, \`code\` for programs, \`requestId\` for the log, and \`errors\` with a \`pointer\` and a \`detail\` for
each wrong field: \`/title\` in the body, \`?limit\` in the query, \`:id\` in the path, \`header If-Match\`. Some carry further facts,
such as \`currentVersion\` or \`allowed\`. \`type\` leads to the same list on your server: \`/docs/problems\`.

This page is made from \`packages/server/src/problems.ts\`; \`npx vitest run problems -u\` renews it.

| code | status | what it says | what to do |
|---|---|---|---|
`
