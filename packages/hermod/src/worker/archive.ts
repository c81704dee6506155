/**
 * Archive: before a leaf of the log goes, its events are written as NDJSON + gzip, in order of
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
import { type Database, type PoolClient, select, transaction } from '../database.ts'
import { putObject, type S3Target } from './s3.ts'

export interface Archive {
  readonly folder?: string | undefined
  readonly s3?: S3Target | undefined
}

export interface LeafRange {
  readonly name: string
  readonly from: string | null
  readonly to: string | null
}

interface File {
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  readonly rows: number
}

/** Positions per page: a payload has at most 256 kB, so a page fits into the heap. */
const pageRows = 500

const LOCK = 'select outbox.lock_leaf($1)::text as mine'
const NOTE = `insert into outbox.leaf as l (name, archived_as, archived_rows) values ($1, $2, $3)
  on conflict (name) do update set archived_as = excluded.archived_as, archived_rows = excluded.archived_rows`

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

/** Keeps the leaf's advisory lock meanwhile, in a transaction that has no snapshot between pages. */
export async function archiveLeaf(db: Database, leaf: LeafRange, target: Archive): Promise<void> {
  await transaction(db, async (client) => {
    const [lock] = await select(client, LOCK, [leaf.name])
    if (lock?.mine !== 'true') throw new Error('another worker is at it')
    const folder = await mkdtemp(join(tmpdir(), 'hermod-archive-'))
    try {
      const file = await write(client, leaf, join(folder, 'leaf.ndjson.gz'))
      const place = await store(file, archiveName(leaf), target)
      await select(client, NOTE, [leaf.name, place, file.rows])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}

/** Names sort in order of position. */
export function archiveName({ from, to }: LeafRange): string {
  const digits = (value: string | null) => String(value).padStart(19, '0')
  return `log-${digits(from)}-${digits(to)}.ndjson.gz`
}

async function write(client: PoolClient, leaf: LeafRange, path: string): Promise<File> {
  const hash = createHash('sha256')
  const count = { bytes: 0, rows: 0 }
  await pipeline(
    Readable.from(lines(client, leaf, count)),
    createGzip(),
    async function* measure(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        count.bytes += chunk.length
        yield chunk
      }
    },
    createWriteStream(path),
  )
  return { path, sha256: hash.digest('hex'), ...count }
}

async function* lines(client: PoolClient, leaf: LeafRange, count: { rows: number }) {
  const end = BigInt(leaf.to ?? 0)
  let from = BigInt(leaf.from ?? 0)
  while (from < end) {
    const rows = await select(client, PAGE, [String(from), String(end)])
    // Positions are dense up to the last one of an epoch.
    if (rows.length === 0) return
    yield `${rows.map(({ line }) => line).join('\n')}\n`
    count.rows += rows.length
    from += BigInt(pageRows)
  }
}

async function store(file: File, name: string, { folder, s3 }: Archive): Promise<string> {
  if (folder !== undefined) return storeInFolder(file, name, folder)
  if (s3 === undefined) throw new Error('no archive is configured')
  return putObject(s3, name, createReadStream(file.path), file)
}

/** Flushed before it gets its final name: such a name means a complete file, even after a crash. */
async function storeInFolder(file: File, name: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const part = join(folder, `${name}.part`)
  await copyFile(file.path, part)
  const handle = await open(part, 'r+')
  await handle.sync().finally(() => handle.close())
  const place = join(folder, name)
  await rename(part, place)
  return place
}
