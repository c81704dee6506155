/**
 * Archive: before positions of the log go, their events are written as NDJSON + gzip, in order of
 * position, to a folder or an S3-compatible bucket. Only a complete file gets its final name.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdir, mkdtemp, open, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Database, type PoolClient, select, transaction } from '../../database.ts'
import { putObject, type S3Target } from './s3.ts'

export interface Archive {
  readonly folder?: string | undefined
  readonly s3?: S3Target | undefined
}

interface File {
  readonly path: string
  readonly sha256: string
  readonly bytes: number
}

/** Positions per page: a payload has at most 256 kB, so a page fits into the heap. */
const pageRows = 500

const LOCK = 'select outbox.lock_leaf($1)::text as mine'
/** From the first position that is neither gone nor in the archive. */
const START = `select greatest(outbox.log_first($1), (select l.archived_to from outbox.leaf l where l.name = $1))::text as start`
const NOTE = `insert into outbox.leaf as l (name, archived_to, archived_as, archived_rows) values ($1, $2::bigint, $3, $4)
  on conflict (name) do update set archived_to = excluded.archived_to, archived_as = excluded.archived_as,
    archived_rows = coalesce(l.archived_rows, 0) + excluded.archived_rows`

/** By lane, because the log's index starts with it. A raw line break in JSON is only white space. */
const PAGE = `
  select g.pos::text, translate('{' || concat_ws(',', '"position":"' || g.pos || '"', '"id":"' || e.id || '"', '"lane":' || g.lane,
      '"type":' || to_json(e.type), '"aggregate":' || json_build_array(e.aggregate_type, e.aggregate_id), '"version":' || e.version,
      '"createdAt":' || to_json(e.created_at), '"key":' || to_json(e.key), '"headers":' || e.headers, '"payload":' || e.payload) || '}',
      E'\\n\\r', '  ') as line
    from outbox.setting t cross join generate_series(0, t.lanes - 1) i
   cross join lateral (select * from outbox.log l where l.lane = i and l.pos >= $1::bigint and l.pos < least($1::bigint + ${pageRows}, $2::bigint)) g
    left join outbox.event e on e.id = g.event_id
   order by g.pos`

export interface Part {
  readonly name: string
  /** Up to this position, not included. */
  readonly to: string
  /** The leaf has nothing above it. */
  readonly whole: boolean
}

/** Holds the leaf's advisory lock meanwhile, in a transaction that has no snapshot between pages. */
export async function archiveLeaf(db: Database, { name, to, whole }: Part, target: Archive): Promise<void> {
  await transaction(db, async (client) => {
    const [lock] = await select(client, LOCK, [name])
    if (lock?.mine !== 'true') throw new Error('another worker is at it')
    const [first] = await select(client, START, [name])
    const start = BigInt(first?.start ?? to)
    const count = { rows: 0 }
    const stored =
      start < BigInt(to)
        ? await storeLines(lines(client, start, BigInt(to), count), archiveName(String(start), to), target)
        : 'nothing was left'
    await select(client, NOTE, [name, to, whole ? stored : null, count.rows])
  })
}

/** Names sort in order of position. */
export function archiveName(from: string, to: string): string {
  const digits = (value: string) => value.padStart(19, '0')
  return `log-${digits(from)}-${digits(to)}.ndjson.gz`
}

/** Written on this machine first, so that its size and hash are known. Resolves to where it is. */
export async function storeLines(
  pages: AsyncIterable<string> | Iterable<string>,
  name: string,
  target: Archive,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hermod-archive-'))
  try {
    return await store(await write(pages, join(folder, 'lines.ndjson.gz')), name, target)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function write(pages: AsyncIterable<string> | Iterable<string>, path: string): Promise<File> {
  const hash = createHash('sha256')
  let bytes = 0
  await pipeline(
    Readable.from(pages),
    createGzip(),
    async function* measure(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
      }
    },
    // Payloads are nobody else's to read; a copy keeps the mode.
    createWriteStream(path, { mode: 0o600 }),
  )
  return { path, sha256: hash.digest('hex'), bytes }
}

async function* lines(client: PoolClient, start: bigint, end: bigint, count: { rows: number }) {
  for (let from = start; from < end; from += BigInt(pageRows)) {
    const rows = await select(client, PAGE, [String(from), String(end)])
    // Positions are dense up to the last one of an epoch.
    if (rows.length === 0) return
    yield `${rows.map(({ line }) => line).join('\n')}\n`
    count.rows += rows.length
  }
}

async function store(file: File, name: string, { folder, s3 }: Archive): Promise<string> {
  if (folder !== undefined) return storeInFolder(file, name, folder)
  if (s3 === undefined) throw new Error('no archive is configured')
  return putObject(s3, name, createReadStream(file.path), file)
}

/** Flushed before it gets its final name: such a name means a complete file, even after a crash. */
async function storeInFolder(file: File, name: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const part = join(folder, `${name}.part`)
  await copyFile(file.path, part)
  const handle = await open(part, 'r+')
  await handle.sync().finally(() => handle.close())
  const place = join(folder, name)
  await rename(part, place)
  return place
}
