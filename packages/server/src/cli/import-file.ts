/** The work of `hermod import`: reads, checks, writes, and says what became of every row. */
import { createReadStream, type ReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type Context, type ProgressBar, progressBar, usage } from 'hermod/cli'
import type { Actor } from '../actor.ts'
import { Addresses } from '../documents/import/people.ts'
import { type ImportFormat, type Received, receive } from '../documents/import/receive.ts'
import { claimImport, type ImportRecord } from '../documents/import/record.ts'
import type { RowError } from '../documents/import/rows.ts'
import { type Counted, checkImport, writeImport } from '../documents/import/run.ts'
import { checkViewOf, viewOf } from '../documents/import/view.ts'
import { permissionsOf } from '../permissions.ts'
import type { Platform } from '../platform.ts'
import { userName } from './people/with-platform.ts'

export interface FileImport {
  readonly file: string
  readonly as: string
  readonly format: ImportFormat
  readonly key: string | undefined
  readonly bestEffort: boolean
  readonly dryRun: boolean
}

export async function importFile(platform: Platform, context: Context, asked: FileImport): Promise<number> {
  const actor = await actorOf(platform, asked.as)
  const bar = (what: string) => progressBar(what, { wanted: !context.terminal.json })
  const received = await read(platform, asked, bar('reading'))
  const writing = bar(asked.dryRun ? 'checking' : 'importing')
  try {
    const onProgress = (done: number) => writing.show({ done, total: received.rows })
    if (asked.dryRun) {
      const counted = await checkImport(platform, actor, received, { onProgress })
      writing.end()
      return tellCheck(context, received, counted)
    }
    const mode = asked.bestEffort ? 'best-effort' : 'all'
    const key = asked.key ?? `file-${received.hash}`
    const claim = await claimImport(platform, actor, { mode, key }, received)
    const record = claim.mine ? await writeImport(platform, actor, received, claim, { onProgress }) : claim.record
    writing.end()
    return tell(context, record, claim.mine)
  } finally {
    writing.end()
    await received.spool.close()
  }
}

async function read({ config }: Platform, { file, format }: FileImport, bar: ProgressBar): Promise<Received> {
  const total = file === '-' ? 0 : await sizeOf(file)
  const source = file === '-' ? process.stdin : createReadStream(file)
  try {
    return await receive(source as ReadStream, {
      format,
      rowBytesMax: config.limits.documentBytes,
      onProgress: (done) => bar.show({ done, total: Math.max(done, total) }),
    })
  } finally {
    bar.end()
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw usage(`${file} cannot be read (${code})`)
  }
}

/** A person imports; the audit trail also says that it was done by this shell. */
async function actorOf({ pool }: Platform, as: string): Promise<Actor> {
  const addresses = new Addresses()
  await addresses.learn(pool, [{ row: 0, line: 0, document: { owners: [as] } as never }])
  const found = addresses.idOf(as)
  if (found.id === undefined) throw usage(`--as ${found.detail}`)
  return {
    personId: found.id,
    identity: `shell:${userName()}`,
    role: 'operator',
    permissions: permissionsOf('operator'),
    endpoint: 'hermod import',
    userAgent: null,
    ip: null,
    requestId: crypto.randomUUID(),
  }
}

const listed = 20

function tell({ terminal }: Context, record: ImportRecord, mine: boolean): number {
  const { id, imported, failed, errors, reason, startedAt } = record
  const wrong = failed > 0 || record.state === 'failed' ? 1 : 0
  if (terminal.json) {
    terminal.document({ ...viewOf(record), repeated: !mine })
    return wrong
  }
  tellErrors(terminal, errors, failed)
  const before = mine ? '' : `This file was imported on ${startedAt.toISOString()}: `
  const done = `${before}${imported} documents imported, ${failed} rows failed. Import ${id}.`
  terminal.data(record.state === 'failed' ? `${reason} Import ${id}.` : done)
  return wrong
}

function tellCheck({ terminal }: Context, received: Received, counted: Counted): number {
  const { imported, failed, errors } = counted
  if (terminal.json) terminal.document(checkViewOf(received, counted))
  else {
    tellErrors(terminal, errors, failed)
    terminal.data(`${imported} documents would be imported, ${failed} rows are wrong.`)
  }
  return failed > 0 ? 1 : 0
}

function tellErrors(terminal: Context['terminal'], errors: readonly RowError[], failed: number) {
  for (const { row, line, pointer, detail } of errors.slice(0, listed)) {
    terminal.say(`  row ${row} (line ${line}) ${pointer} ${detail}`)
  }
  if (errors.length > listed) terminal.say(`  and more: ${failed} rows; --json lists 1,000`)
}
