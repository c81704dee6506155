/** What a newcomer reads when everything runs: what runs where, where the data lives, what to try. */
import { relative } from 'node:path'
import { version } from '../version.ts'
import type { DevOptions } from './options.ts'
import { usualPort } from './options.ts'
import type { Dev } from './run.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface Introduction {
  readonly text: string
  /** The same for programs. */
  readonly facts: Readonly<Record<string, unknown>>
}

export function introduce(dev: Dev, options: DevOptions, env: Env, startMs: number): Introduction {
  const { server, mail, data } = dev
  const { url } = server
  const database = data.postgres.url()
  const tries = linesToTry(dev, env)
  const facts = {
    version,
    startMs: Math.round(startMs),
    url,
    api: `${url}/api/v2`,
    docs: `${url}/docs`,
    catcher: `${url}/catcher`,
    smtpPort: mail.port,
    database,
    data: data.path,
    try: tries,
  }
  const postgres = Number.parseFloat(data.postgres.version)
  const text = `
Hermod ${version}  ready in ${(startMs / 1_000).toFixed(1)} s

  Page       ${url}${portNote(options, url)}
  API        ${url}/api/v2      docs ${url}/docs
  Mail       ${url}/catcher     smtp 127.0.0.1:${mail.port}
  Webhooks   ${url}/catcher/hooks/anything takes every POST
  Database   embedded PostgreSQL ${postgres}, ${database}
  Data       ${dataText(dev, options, env)}
${demoText(dev)}
  Try    ${tries.join('\n         ')}

  Stop   Ctrl-C
  For development only: loopback, demo accounts, no TLS.${nodeHint()}
`
  return { text, facts }
}

export function stoppedText(ms: number): string {
  return `Stopped in ${(ms / 1_000).toFixed(1)} s: edits, worker, server, catchers, database.`
}

function portNote({ port }: DevOptions, url: string): string {
  const given = Number(new URL(url).port)
  if (port === 0 || port === given) return ''
  return `   (port ${port} is taken${port === usualPort ? '; --port N chooses' : ''})`
}

function dataText({ data }: Dev, { ephemeral }: DevOptions, env: Env): string {
  if (ephemeral) return `${data.path} (will be deleted on exit)`
  // If the account that runs PostgreSQL cannot reach root's folder, the database is elsewhere.
  const inside = data.postgres.dataDir.startsWith(data.path)
  const more = inside ? '' : ` and ${data.postgres.dataDir}`
  return `${pathFrom(data.path, env)}${more} (kept; start over with: npm start -- --reset)`
}

/** Relative to the folder where the user is; npm changes the folder and tells the original one. */
function pathFrom(path: string, env: Env): string {
  const short = relative(env.INIT_CWD ?? process.cwd(), path)
  return short === '' || short.startsWith('..') ? path : `./${short}`
}

function demoText({ demo }: Dev): string {
  if (demo.documents.length === 0) return ''
  return `
  ${demo.documents.length} demo documents, five people; a review is in progress, and one document is edited every few seconds.
`
}

/** Each works as it is printed. */
function linesToTry({ server: { url }, data, demo }: Dev, env: Env): string[] {
  const curl = `curl -s -H @'${pathFrom(data.headerFile, env)}'`
  const draft = JSON.stringify({ title: 'My first document', docType: 'RFC', product: 'Platform' })
  const one = demo.documents[0]
  return [
    `${curl} '${url}/api/v2/search?q=outbox'`,
    `${curl} -H 'content-type: application/json' -d '${draft}' ${url}/api/v2/documents`,
    one === undefined ? `${curl} ${url}/api/v2/health` : `${curl} ${url}/api/v2/documents/${one.id}/sync`,
  ]
}

function nodeHint(): string {
  const { node } = process.versions
  return Number.parseInt(node, 10) < 24 ? ` Node ${node} works, 24 is recommended.` : ''
}
