/** The page behind the `type` of every problem, made from the catalogue. */
import type { FastifyInstance } from 'fastify'
import { type ProblemCode, problemCatalogue } from '../problems.ts'
import { problemAdvice } from './problem-advice.ts'

const style = `:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884 }
tr:target { background: #fc03 }
`

export function problemPage(app: FastifyInstance): void {
  const open = { config: { permission: 'public' as const }, schema: { hide: true } }
  const page = pageOf()
  app.get('/docs/problems', open, async (_request, reply) => reply.type('text/html').send(page))
  app.get('/docs/problems.css', open, async (_request, reply) => reply.type('text/css').send(style))
}

function pageOf(): string {
  const rows = Object.entries(problemCatalogue).map(([code, [status, title]]) => {
    const advice = problemAdvice[code as ProblemCode].replace(/`([^`]+)`/g, '<code>$1</code>')
    const cells = [`<code>${code}</code>`, status, title, advice]
    return `<tr id="${code.toLowerCase()}"><td>${cells.join('</td><td>')}</td></tr>`
  })
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Hermod: problems</title>
<link rel="stylesheet" href="/docs/problems.css"><link rel="icon" href="/favicon.svg"></head>
<body><h1>Problems</h1>
<p>Every error of the API is one of these. <code>detail</code> says what is wrong and what to do;
<code>errors</code> names the fields; <code>requestId</code> finds it in the log.</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th>What to do</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table>
<p><a href="/docs">The API</a></p></body></html>
`
}
